"""Rewards: what an answer is worth, given the question's reference (paper, Eq. 6)."""

from dataclasses import dataclass
from typing import Protocol

from mesa_pipeline.errors import DataError
from mesa_pipeline.evaluation.metrics import token_f1
from mesa_pipeline.types import Question


@dataclass(frozen=True)
class Judgement:
    """What a reward found.

    Attributes:
        score: In [0, 1], higher is better; ``None`` where there is none, which is never the same as 0.
        reply: The judge's own words, where a language model judged.
        error: Why there is no score.
    """

    score: float | None
    reply: str | None = None
    error: str | None = None


class Reward(Protocol):
    """Scores answers. ``judge`` never raises for what a model does: that is a judgement without a score."""

    @property
    def name(self) -> str:
        """All that changes a score: the function, or the judge and what it is asked."""
        ...

    def judge(self, question: Question, task: str, answer: str) -> Judgement: ...


def reference_of(question: Question) -> str:
    """What an answer is compared with.

    Raises:
        DataError: The question has no reference answer.
    """
    if question.answer is None:
        raise DataError(f"question {question.id!r} has no reference answer; it can be asked, not scored")
    return question.answer


@dataclass(frozen=True)
class TokenF1:
    """Token F1 as the dataset's own benchmark computes it; datasets without one use AMA-Bench's."""

    dataset: str

    @property
    def name(self) -> str:
        return f"token_f1:{self.dataset}"

    def judge(self, question: Question, task: str, answer: str) -> Judgement:
        """Score an answer.

        Raises:
            DataError: The question has no reference answer.
        """
        return Judgement(token_f1(self.dataset, answer, reference_of(question), question.qa_type))
