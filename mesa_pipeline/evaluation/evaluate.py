"""Scoring a policy against the outcome table: one array lookup, no model call.

A question that is unscored under the subset chosen for it is excluded from J and counted; its tokens were spent all the same,
so C is over every question. A cell that was never swept stops the evaluation.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mesa_pipeline.errors import ArtifactError, PolicyError
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FittedPolicy, policy_inputs
from mesa_pipeline.subsets import ALL_SUBSETS, FULL_SUBSET, size

EvaluationKind = Literal["frozen", "all", "single", "fixed", "lookup", "route", "executable", "zero_shot", "random", "oracle"]
SUBSET_SIZES = np.array([0, *(size(mask) for mask in ALL_SUBSETS)])


@dataclass(frozen=True)
class Evaluation:
    """What a policy is worth on some questions.

    Attributes:
        name: Name of the policy.
        kind: Family of the policy.
        n: Number of questions.
        score: J, mean score over the scored questions, in [0, 1].
        tokens: C, mean evidence tokens over all n questions.
        structures: Mean number of structures read.
        objective: J - lambda C.
        unscored: Questions without a score, excluded from ``score``.
    """

    name: str
    kind: EvaluationKind
    n: int
    score: float
    tokens: float
    structures: float
    objective: float
    unscored: int


@dataclass(frozen=True)
class PerQuestion:
    """What each of n questions yielded: arrays of shape ``(n,)``.

    Attributes:
        scores: In [0, 1]; NaN where unscored.
        tokens: Evidence tokens.
        structures: Structures read.
    """

    scores: np.ndarray
    tokens: np.ndarray
    structures: np.ndarray

    def evaluation(self, name: str, kind: EvaluationKind, lambda_: float) -> Evaluation:
        """The means.

        Raises:
            ArtifactError: No question has a score.
        """
        n = len(self.scores)
        unscored = int(np.isnan(self.scores).sum())
        if unscored == n:
            raise ArtifactError(f"{name}: none of {n} questions has a score; see what failed with `mesa sweep`")
        score, tokens = float(np.nanmean(self.scores)), float(self.tokens.mean())
        return Evaluation(name, kind, n, score, tokens, float(self.structures.mean()), score - lambda_ * tokens, unscored)


def outcomes_of(matrix: OutcomeMatrix, choices: np.ndarray, name: str) -> PerQuestion:
    """What reading ``choices`` yielded for each question.

    Args:
        matrix: Outcomes of n questions.
        choices: Shape ``(n,)``, integer masks 1..31.
        name: Name of the policy, for messages.

    Raises:
        PolicyError: The choices are not n masks.
        ArtifactError: A chosen cell was never swept; names the count.
    """
    if choices.shape != (len(matrix),) or choices.dtype.kind != "i" or not np.isin(choices, ALL_SUBSETS).all():
        raise PolicyError(f"{name}: expected {len(matrix)} subsets 1..{FULL_SUBSET}, one a question")
    rows = np.arange(len(matrix))
    tokens = matrix.tokens[rows, choices - 1]
    _require_swept(tokens, name)
    return PerQuestion(matrix.scores[rows, choices - 1], tokens, SUBSET_SIZES[choices])


def evaluate_choices(name: str, kind: EvaluationKind, matrix: OutcomeMatrix, choices: np.ndarray, lambda_: float) -> Evaluation:
    """What one subset per question is worth; see ``outcomes_of`` for the arguments.

    Raises:
        PolicyError: The choices are not n masks.
        ArtifactError: A chosen cell was never swept, or no chosen cell has a score.
    """
    return outcomes_of(matrix, choices, name).evaluation(name, kind, lambda_)


def evaluate_policy(fitted: FittedPolicy, matrix: OutcomeMatrix, lambda_: float, labels: bool = True) -> Evaluation:
    """What a fitted policy is worth, shown the benchmark's labels or not.

    Raises:
        PolicyError: The policy broke its contract.
        ArtifactError: A chosen cell was never swept, or no chosen cell has a score.
    """
    choices = fitted.choices(policy_inputs(matrix, labels))
    return evaluate_choices(fitted.name, fitted.policy.kind, matrix, choices, lambda_)


def random_outcomes(matrix: OutcomeMatrix) -> PerQuestion:
    """Exact expectation, for each question, of reading one of the 31 subsets at random.

    The expected score of a question is over its scored subsets; a question without any is unscored.

    Raises:
        ArtifactError: A cell was never swept.
    """
    _require_swept(matrix.tokens, "random")
    scored = ~np.isnan(matrix.scores)
    counts = scored.sum(axis=1)
    sums = np.where(scored, matrix.scores, 0.0).sum(axis=1)
    scores = np.divide(sums, counts, out=np.full(len(matrix), np.nan), where=counts > 0)
    structures = np.full(len(matrix), SUBSET_SIZES[1:].mean())
    return PerQuestion(scores, matrix.tokens.mean(axis=1), structures)


def random_expectation(matrix: OutcomeMatrix, lambda_: float) -> Evaluation:
    """Exact expected worth of choosing each question's subset uniformly at random.

    Raises:
        ArtifactError: A cell was never swept, or none has a score.
    """
    return random_outcomes(matrix).evaluation("random", "random", lambda_)


def oracle_choices(matrix: OutcomeMatrix, lambda_: float) -> np.ndarray:
    """Best subset of each question by its own outcomes: shape ``(n,)``; ties go to fewer tokens, then to the smaller mask.

    An unscored cell is never chosen, unless the question has no other; then its cheapest subset is.

    Raises:
        ArtifactError: A cell was never swept.
    """
    _require_swept(matrix.tokens, "oracle")
    objective = np.where(np.isnan(matrix.scores), -np.inf, matrix.scores - lambda_ * matrix.tokens)
    tied = objective == objective.max(axis=1, keepdims=True)
    choices: np.ndarray = np.where(tied, matrix.tokens, np.inf).argmin(axis=1) + 1
    return choices


def oracle(matrix: OutcomeMatrix, lambda_: float) -> Evaluation:
    """The upper bound: what choosing with knowledge of every outcome would be worth.

    Raises:
        ArtifactError: A cell was never swept, or none has a score.
    """
    return evaluate_choices("oracle", "oracle", matrix, oracle_choices(matrix, lambda_), lambda_)


def fully_scored(matrix: OutcomeMatrix) -> OutcomeMatrix:
    """The questions scored under all 31 subsets, on which any two policies can be compared fairly.

    Raises:
        ArtifactError: There is none.
    """
    complete = ~np.isnan(matrix.scores).any(axis=1)
    if not complete.any():
        raise ArtifactError(
            f"none of {len(matrix)} questions is scored under all {len(ALL_SUBSETS)} subsets; run `mesa sweep` again"
        )
    return matrix.select(complete)


def _require_swept(tokens: np.ndarray, name: str) -> None:
    missing = int(np.isnan(tokens).sum())
    if missing:
        raise ArtifactError(f"{name}: {missing} of {tokens.size} outcomes needed are missing; make them with `mesa sweep`")
