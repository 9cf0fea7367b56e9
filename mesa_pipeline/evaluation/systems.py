"""One memory system read alone: what its evidence is worth for a question, and what it took to find it."""

from dataclasses import dataclass
from typing import Any, Literal

from mesa_pipeline.errors import ModelError, SystemFailure
from mesa_pipeline.evaluation.rewards import Judgement
from mesa_pipeline.evaluation.sweep import Reading
from mesa_pipeline.llm.metering import Cost, metered
from mesa_pipeline.reading.compose import compose_alone
from mesa_pipeline.structures.base import MemorySystem
from mesa_pipeline.types import Answer, Evidence, Question

Answers = Literal["common", "native"]
"""Who answers: the reader that all systems share, or the system itself where it does."""


@dataclass(frozen=True)
class SystemOutcome:
    """What one system's evidence was worth for one question.

    Attributes:
        question_id: Id of the question.
        score: Reward in [0, 1]; ``None`` when unscored (system, reader or judge failed), never a silent 0.
        tokens: Evidence tokens that the reader was shown.
        answer: The answer that was scored.
        cost: What finding the evidence took: the system's own requests, not the reader's and not the judge's.
        steps: Steps that the evidence speaks of, ascending.
        truncated: Something of the evidence was cut.
        draft: The system's own answer, where it gave one.
        error: Why there is no score.
        judge_reply: The judge's own words, where a language model judged.
    """

    question_id: str
    score: float | None
    tokens: int
    answer: str
    cost: Cost
    steps: tuple[int, ...] = ()
    truncated: bool = False
    draft: str | None = None
    error: str | None = None
    judge_reply: str | None = None

    @property
    def query_tokens(self) -> int:
        """All that language models read before the answer is there: the system's own prompts, and the evidence."""
        return self.cost.prompt_tokens + self.tokens


def ask_system(
    system: MemorySystem[Any], memory: Any, question: Question, task: str, reading: Reading, answers: Answers = "common"
) -> SystemOutcome:
    """Retrieve, read and judge one question. A request that gets no reply leaves it unscored."""
    with metered() as meter:
        try:
            evidence = system.retrieve(memory, question.text)
        except (ModelError, SystemFailure) as error:
            return SystemOutcome(question.id, None, 0, "", meter.cost, error=f"{system.name}: {error}")
        cost = meter.cost
    composed = compose_alone(evidence, reading.counter)
    answer = _native(evidence) if answers == "native" else None
    answer = answer or reading.reader.answer(question.text, task, composed)
    judgement = Judgement(None, error=answer.error) if answer.error else reading.reward.judge(question, task, answer.text)
    return SystemOutcome(
        question.id,
        judgement.score,
        composed.tokens,
        answer.text,
        cost,
        steps=tuple(sorted({step for item in evidence.items for step in item.steps})),
        truncated=evidence.truncated,
        draft=evidence.draft,
        error=judgement.error,
        judge_reply=judgement.reply,
    )


def _native(evidence: Evidence) -> Answer | None:
    return None if evidence.draft is None else Answer(evidence.draft)
