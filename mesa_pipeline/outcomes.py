"""The outcome table, the spine of the system: what every subset was worth for every question.

Policies, lookups, reports and (later) credit only read it, so evaluating a policy is one array lookup.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mesa_pipeline.subsets import ALL_SUBSETS
from mesa_pipeline.types import Outcome, Preview


@dataclass(frozen=True)
class QuestionInfo:
    """What may be known of a question beside its outcomes; everything here is observable before answering."""

    id: str
    episode_id: str
    text: str
    domain: str
    task_type: str
    qa_type: str | None
    steps: int
    previews: Mapping[str, Preview] = field(default_factory=dict)


@dataclass(frozen=True)
class OutcomeMatrix:
    """Outcomes of some questions as arrays.

    Attributes:
        questions: The n questions, in order.
        scores: Shape ``(n, 31)``, float64 in [0, 1]; NaN where unscored or missing. Column ``mask - 1`` belongs to ``mask``.
        tokens: Shape ``(n, 31)``, float64 evidence tokens; NaN where missing.
    """

    questions: tuple[QuestionInfo, ...]
    scores: np.ndarray
    tokens: np.ndarray

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def episode_ids(self) -> np.ndarray:
        """Shape ``(n,)``: the clusters of every bootstrap."""
        return np.array([question.episode_id for question in self.questions], dtype=object)

    @property
    def unscored(self) -> int:
        """Number of cells without a score."""
        return int(np.isnan(self.scores).sum())

    def select(self, keep: np.ndarray) -> "OutcomeMatrix":
        """The questions where the boolean array ``keep``, shape ``(n,)``, is true."""
        questions = tuple(question for question, kept in zip(self.questions, keep, strict=True) if kept)
        return OutcomeMatrix(questions, self.scores[keep], self.tokens[keep])


def joined(first: OutcomeMatrix, second: OutcomeMatrix) -> OutcomeMatrix:
    """The questions of both, one after the other."""
    return OutcomeMatrix(
        first.questions + second.questions,
        np.concatenate([first.scores, second.scores]),
        np.concatenate([first.tokens, second.tokens]),
    )


def to_matrix(questions: Sequence[QuestionInfo], outcomes: Sequence[Outcome]) -> OutcomeMatrix:
    """Arrange outcomes by question and subset; cells nobody filled stay NaN, outcomes of other questions are left aside."""
    rows = {question.id: row for row, question in enumerate(questions)}
    scores = np.full((len(questions), len(ALL_SUBSETS)), np.nan)
    tokens = np.full((len(questions), len(ALL_SUBSETS)), np.nan)
    for outcome in outcomes:
        row = rows.get(outcome.question_id)
        if row is None:
            continue
        tokens[row, outcome.subset - 1] = outcome.tokens
        if outcome.score is not None:
            scores[row, outcome.subset - 1] = outcome.score
    return OutcomeMatrix(tuple(questions), scores, tokens)
