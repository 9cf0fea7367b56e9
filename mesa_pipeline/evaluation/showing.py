"""What a policy yielded, question by question: what contests and health checks are worked out from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mesa_pipeline.evaluation.evaluate import outcomes_of
from mesa_pipeline.evaluation.statistics import Interval, clustered_interval
from mesa_pipeline.outcomes import OutcomeMatrix


@dataclass(frozen=True)
class Showing:
    """A policy on n questions.

    Attributes:
        questions: Ids of the questions, shape ``(n,)``.
        episodes: Id of each question's episode, shape ``(n,)``: the clusters.
        domains: Domain of each, shape ``(n,)``.
        scores: In [0, 1], shape ``(n,)``; NaN where unscored.
        tokens: Evidence tokens, shape ``(n,)``.
    """

    questions: np.ndarray
    episodes: np.ndarray
    domains: np.ndarray
    scores: np.ndarray
    tokens: np.ndarray

    @classmethod
    def of(cls, matrix: OutcomeMatrix, choices: np.ndarray, name: str) -> Self:
        """What reading ``choices``, shape ``(n,)``, yielded; raises as ``outcomes_of``."""
        found = outcomes_of(matrix, choices, name)
        ids = np.array([question.id for question in matrix.questions], dtype=object)
        domains = np.array([question.domain for question in matrix.questions], dtype=object)
        return cls(ids, matrix.episode_ids, domains, found.scores, found.tokens)

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def clusters(self) -> int:
        """Number of episodes."""
        return len(set(self.episodes))

    def worth(self, lambda_: float) -> np.ndarray:
        """Score less the price of the tokens, shape ``(n,)``: what the search maximises the mean of; NaN where unscored."""
        worth: np.ndarray = self.scores - lambda_ * self.tokens
        return worth

    def where(self, keep: np.ndarray) -> Self:
        """The questions where the boolean array ``keep``, shape ``(n,)``, is true."""
        return type(self)(self.questions[keep], self.episodes[keep], self.domains[keep], self.scores[keep], self.tokens[keep])

    def of_episodes(self, ids: frozenset[str]) -> Self:
        """The questions of some episodes."""
        return self.where(np.array([episode in ids for episode in self.episodes], dtype=bool))

    def rows_of(self, other: "Showing") -> np.ndarray:
        """Row here of each question of ``other``, shape ``(len(other),)``; -1 where it is not asked here."""
        rows = {question: row for row, question in enumerate(self.questions)}
        return np.array([rows.get(question, -1) for question in other.questions], dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        return {
            "questions": self.questions.tolist(),
            "episodes": self.episodes.tolist(),
            "domains": self.domains.tolist(),
            "scores": [None if math.isnan(score) else score for score in self.scores.tolist()],
            "tokens": self.tokens.tolist(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``to_json``."""
        questions, episodes, domains = (np.array(value[name], dtype=object) for name in ("questions", "episodes", "domains"))
        scores = np.array([math.nan if score is None else score for score in value["scores"]], dtype=float)
        return cls(questions, episodes, domains, scores, np.array(value["tokens"], dtype=float))


@dataclass(frozen=True)
class Standing:
    """A policy's figures on its held-out episodes, beside reading all five structures on the same.

    Attributes:
        name: Name of the policy.
        manifest_sha256: Hash of its manifest.
        episodes: Number of episodes.
        questions: Number of questions.
        score: Mean score.
        tokens: Mean evidence tokens.
        worth: Mean of score less the price of the tokens.
        all_score: Mean score of reading all five.
        all_tokens: Mean tokens of that.
        versus_all: Paired difference in worth to reading all five.
    """

    name: str
    manifest_sha256: str
    episodes: int
    questions: int
    score: Interval
    tokens: float
    worth: Interval
    all_score: float
    all_tokens: float
    versus_all: Interval

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``dataclasses.asdict``."""
        intervals = {name: Interval(**value[name]) for name in ("score", "worth", "versus_all")}
        return cls(**{**value, **intervals})


def standing(
    name: str, manifest_sha256: str, shown: Showing, everything: Showing, lambda_: float, confidence: float
) -> Standing | None:
    """The figures of a policy; ``None`` without a question that it and all five have a score on.

    Args:
        name: Name of the policy.
        manifest_sha256: Hash of its manifest.
        shown: The policy.
        everything: Reading all five, on the same questions in the same order.
        lambda_: Price of a token.
        confidence: Of the intervals.
    """
    versus_all = shown.worth(lambda_) - everything.worth(lambda_)
    if not np.isfinite(versus_all).any():
        return None
    return Standing(
        name=name,
        manifest_sha256=manifest_sha256,
        episodes=shown.clusters,
        questions=len(shown),
        score=clustered_interval(shown.scores, shown.episodes, confidence),
        tokens=float(shown.tokens.mean()),
        worth=clustered_interval(shown.worth(lambda_), shown.episodes, confidence),
        all_score=float(np.nanmean(everything.scores)),
        all_tokens=float(everything.tokens.mean()),
        versus_all=clustered_interval(versus_all, shown.episodes, confidence),
    )
