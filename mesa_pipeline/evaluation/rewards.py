"""Rewards: functions from a question's reference and an answer to a score."""

from dataclasses import dataclass

from mesa_pipeline.errors import DataError
from mesa_pipeline.evaluation.metrics import token_f1
from mesa_pipeline.types import Question


@dataclass(frozen=True)
class TokenF1:
    """Token F1 as the dataset's own benchmark computes it; datasets without one use AMA-Bench's."""

    dataset: str

    @property
    def name(self) -> str:
        return f"token_f1:{self.dataset}"

    def score(self, question: Question, answer: str) -> float:
        """Score of an answer in [0, 1].

        Raises:
            DataError: The question has no reference answer.
        """
        if question.answer is None:
            raise DataError(f"question {question.id!r} has no reference answer; it can be asked, not scored")
        return token_f1(self.dataset, answer, question.answer, question.qa_type)
