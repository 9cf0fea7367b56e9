"""The sweep of one question: what each of the 31 subsets is worth (paper, Section 3.2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mesa_pipeline.evaluation.rewards import Judgement, Reward
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.reading import Reader
from mesa_pipeline.reading.compose import COMPOSE_VERSION, Composer
from mesa_pipeline.types import Answer, ComposedEvidence, Evidence, Outcome, Question


@dataclass(frozen=True)
class Reading:
    """What turns evidence into a score: the frozen reader, the token counter of its model, and the reward."""

    reader: Reader
    counter: TokenCounter
    reward: Reward

    def identity(self) -> dict[str, Any]:
        """All that changes an outcome apart from question and evidence: JSON-able."""
        return {
            "reader": {"name": self.reader.name, **self.reader.identity()},
            "tokenizer": self.counter.name,
            "reward": self.reward.name,
            "compose": COMPOSE_VERSION,
        }


def sweep_question(
    question: Question,
    task: str,
    evidence: Mapping[str, Evidence],
    subsets: Iterable[int],
    reading: Reading,
) -> list[Outcome]:
    """Outcomes of some subsets for one question, in the order given.

    Subsets whose composed evidence is the same text (a structure returned nothing) share one answer and one judgement. Pass the
    subsets in prefix order for a server that caches prefixes.

    Args:
        question: The question, with its reference answer.
        task: The trajectory's task text.
        evidence: What each structure returned, by code.
        subsets: Masks to evaluate.
        reading: Reader, token counter and reward.
    """
    composer = Composer(evidence, reading.counter)
    read: dict[tuple[str, ...], _Read] = {}
    outcomes: list[Outcome] = []
    for subset in subsets:
        composed = composer.compose(subset)
        sections = tuple(section.text for section in composed.sections)
        if sections not in read:
            read[sections] = _read(question, task, composed, reading)
        outcomes.append(_outcome(question, subset, composed, read[sections]))
    return outcomes


@dataclass(frozen=True)
class _Read:
    answer: Answer
    judgement: Judgement


def _read(question: Question, task: str, composed: ComposedEvidence, reading: Reading) -> _Read:
    answer = reading.reader.answer(question.text, task, composed)
    if answer.error is not None:
        return _Read(answer, Judgement(None, error=answer.error))
    return _Read(answer, reading.reward.judge(question, task, answer.text))


def _outcome(question: Question, subset: int, composed: ComposedEvidence, read: _Read) -> Outcome:
    judgement = read.judgement
    return Outcome(question.id, subset, judgement.score, composed.tokens, read.answer.text, judgement.error, judgement.reply)
