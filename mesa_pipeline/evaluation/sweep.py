"""The sweep of one question: what each of the 31 subsets is worth (paper, Section 3.2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.reading import Reader
from mesa_pipeline.reading.compose import COMPOSE_VERSION, Composer
from mesa_pipeline.types import Answer, ComposedEvidence, Evidence, Outcome, Question


class Reward(Protocol):
    """Scores an answer against the question's reference: in [0, 1], higher is better (paper, Eq. 6)."""

    @property
    def name(self) -> str: ...

    def score(self, question: Question, answer: str) -> float: ...


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

    Subsets whose composed evidence is the same text (a structure returned nothing) share one answer, and so one call of the
    reader. Pass the subsets in prefix order for a server that caches prefixes.

    Args:
        question: The question, with its reference answer.
        task: The trajectory's task text.
        evidence: What each structure returned, by code.
        subsets: Masks to evaluate.
        reading: Reader, token counter and reward.
    """
    composer = Composer(evidence, reading.counter)
    answers: dict[tuple[str, ...], Answer] = {}
    outcomes: list[Outcome] = []
    for subset in subsets:
        composed = composer.compose(subset)
        sections = tuple(section.text for section in composed.sections)
        if sections not in answers:
            answers[sections] = reading.reader.answer(question.text, task, composed)
        outcomes.append(_outcome(question, subset, composed, answers[sections], reading.reward))
    return outcomes


def _outcome(question: Question, subset: int, composed: ComposedEvidence, answer: Answer, reward: Reward) -> Outcome:
    if answer.error is not None:
        return Outcome(question.id, subset, None, composed.tokens, answer.text, error=answer.error)
    return Outcome(question.id, subset, reward.score(question, answer.text), composed.tokens, answer.text)
