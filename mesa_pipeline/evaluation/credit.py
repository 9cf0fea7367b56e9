"""What each structure is worth, from the outcome table alone: counterfactual credit for every question.

The five structures are the players of a cooperative game whose value is the score of the subset that is read. All 31 values of
a question are in the table, so nothing here is sampled or estimated: the credit of a question is exact arithmetic on its row.
Uncertainty enters with the mean over questions alone, and is stated by intervals that resample episodes.

A question that lacks a score under any subset is left out of all of this, and counted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np

from mesa_pipeline.config import EvaluationSettings
from mesa_pipeline.evaluation.evaluate import fully_scored
from mesa_pipeline.evaluation.statistics import Interval, clustered_bootstrap
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.subsets import ALL_SUBSETS, FULL_SUBSET, SINGLE_SUBSETS, STRUCTURE_CODES, size

N_STRUCTURES = len(STRUCTURE_CODES)
PAIRS = tuple(combinations(range(N_STRUCTURES), 2))
"""Pairs of structure positions, in the order of ``GroupCredit.interactions``."""
SCORE_TOLERANCE = 1e-12
"""Scores closer than this are equal: summation order must not make a structure harmful."""


@dataclass(frozen=True)
class Credit:
    """Credit of n questions; structures in the order S T G V R.

    Attributes:
        questions: The n fully scored questions.
        shapley: Shape ``(n, 5)``. A row sums to the score of reading all five less ``empty_score``.
        interactions: Shape ``(n, 5, 5)``, symmetric, zero diagonal: above zero, two structures are worth more together than
            apart; below zero, one makes the other redundant.
        leave_one_out: Shape ``(n, 5)``: score of all five less that of all but k.
        add_one: Shape ``(n, 5)``: mean gain from adding k to the 15 non-empty subsets without it.
        harmful: Shape ``(n, 5)``: share of those 15 subsets whose score falls when k is added.
        harmful_to_all: Shape ``(n, 5)``, boolean: all five score less than all but k.
        left_out: Questions without credit, because a subset is unscored.
    """

    questions: tuple[QuestionInfo, ...]
    shapley: np.ndarray
    interactions: np.ndarray
    leave_one_out: np.ndarray
    add_one: np.ndarray
    harmful: np.ndarray
    harmful_to_all: np.ndarray
    left_out: int


@dataclass(frozen=True)
class GroupCredit:
    """Mean credit over a group of questions; five entries each, in the order S T G V R, but for the pairs.

    Attributes:
        name: The group's value, such as a domain.
        questions: Number of questions.
        episodes: Number of episodes they come from.
        shapley: Mean Shapley values.
        leave_one_out: Mean loss from leaving out of all five.
        add_one: Mean gain from adding to a subset.
        interactions: Mean interaction of each of ``PAIRS``.
        harmful: Mean share of subsets that the structure makes worse.
        harmful_to_all: Share of questions on which all five score less than without it.
    """

    name: str
    questions: int
    episodes: int
    shapley: tuple[Interval, ...]
    leave_one_out: tuple[Interval, ...]
    add_one: tuple[Interval, ...]
    interactions: tuple[Interval, ...]
    harmful: tuple[float, ...]
    harmful_to_all: tuple[float, ...]


def shapley_values(scores: np.ndarray, empty_score: float) -> np.ndarray:
    """Shapley values: the mean gain from adding a structure over all 120 orders of reading the five.

    Args:
        scores: Shape ``(n, 31)``, the score of each subset; column ``mask - 1`` belongs to ``mask``.
        empty_score: Score of reading nothing.

    Returns:
        Shape ``(n, 5)``; NaN where any of the row's scores is.
    """
    values: np.ndarray = _with_empty(scores, empty_score) @ _shapley_weights()
    return values


def interaction_indices(scores: np.ndarray, empty_score: float) -> np.ndarray:
    """Shapley interaction index of each pair (Grabisch and Roubens, 1999).

    The mean, over the subsets A of the other three, of v(A+i+j) - v(A+i) - v(A+j) + v(A), where each size of A weighs the same
    and so does each A of one size.

    Args:
        scores: Shape ``(n, 31)``.
        empty_score: Score of reading nothing.

    Returns:
        Shape ``(n, 5, 5)``, symmetric with a zero diagonal; NaN off it where any of the row's scores is.
    """
    of_pairs = _with_empty(scores, empty_score) @ _interaction_weights()
    indices = np.zeros((len(scores), N_STRUCTURES, N_STRUCTURES))
    for column, (i, j) in enumerate(PAIRS):
        indices[:, i, j] = indices[:, j, i] = of_pairs[:, column]
    return indices


def credit(matrix: OutcomeMatrix, empty_score: float) -> Credit:
    """Credit of every fully scored question.

    Args:
        matrix: Outcomes of some questions.
        empty_score: Score of reading nothing, which the sweep does not measure.

    Raises:
        ArtifactError: No question is scored under all 31 subsets.
    """
    complete = fully_scored(matrix)
    scores = complete.scores
    gains = np.stack([_gains(scores, bit) for bit in SINGLE_SUBSETS], axis=1)
    leave_one_out = np.stack(
        [_score(scores, FULL_SUBSET) - _score(scores, FULL_SUBSET & ~bit) for bit in SINGLE_SUBSETS], axis=1
    )
    return Credit(
        questions=complete.questions,
        shapley=shapley_values(scores, empty_score),
        interactions=interaction_indices(scores, empty_score),
        leave_one_out=leave_one_out,
        add_one=gains.mean(axis=2),
        harmful=(gains < -SCORE_TOLERANCE).mean(axis=2),
        harmful_to_all=leave_one_out < -SCORE_TOLERANCE,
        left_out=len(matrix) - len(complete),
    )


def group_credit(
    found: Credit, group: Callable[[QuestionInfo], str | None], settings: EvaluationSettings
) -> tuple[GroupCredit, ...]:
    """Mean credit of each group, groups in alphabetical order; questions whose group is ``None`` are in none."""
    names = np.array([group(question) for question in found.questions], dtype=object)
    return tuple(
        _mean_credit(name, found, names == name, settings) for name in sorted({name for name in names if name is not None})
    )


def mean_credit(found: Credit, name: str, settings: EvaluationSettings) -> GroupCredit:
    """Mean credit over all questions, under a name."""
    return _mean_credit(name, found, np.full(len(found.questions), True), settings)


def minimal_winning(scores: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """Which subsets reach a score that none of their own non-empty parts reaches.

    Args:
        scores: Shape ``(n, 31)``; a NaN reaches nothing.
        threshold: Shape ``(n,)``, the score to reach: 1 for a right answer under a yes-or-no judge, or the score of reading all
            five to find what would have been enough.

    Returns:
        Boolean, shape ``(n, 31)``.
    """
    winning = scores >= threshold[:, np.newaxis] - SCORE_TOLERANCE
    minimal = winning.copy()
    for mask in ALL_SUBSETS:
        parts = [part - 1 for part in ALL_SUBSETS if part != mask and part & mask == part]
        minimal[:, mask - 1] &= ~winning[:, parts].any(axis=1)
    return minimal


def _mean_credit(name: str, found: Credit, keep: np.ndarray, settings: EvaluationSettings) -> GroupCredit:
    episodes = np.array([question.episode_id for question in found.questions], dtype=object)[keep]
    pairs = np.stack([found.interactions[:, i, j] for i, j in PAIRS], axis=1)
    columns = np.hstack([found.shapley, found.leave_one_out, found.add_one, pairs])[keep]
    intervals = clustered_bootstrap(columns, episodes, settings.bootstrap_samples, settings.confidence, settings.bootstrap_seed)
    return GroupCredit(
        name=name,
        questions=int(keep.sum()),
        episodes=len(set(episodes)),
        shapley=intervals[:N_STRUCTURES],
        leave_one_out=intervals[N_STRUCTURES : 2 * N_STRUCTURES],
        add_one=intervals[2 * N_STRUCTURES : 3 * N_STRUCTURES],
        interactions=intervals[3 * N_STRUCTURES :],
        harmful=tuple(map(float, found.harmful[keep].mean(axis=0))),
        harmful_to_all=tuple(map(float, found.harmful_to_all[keep].mean(axis=0))),
    )


def _with_empty(scores: np.ndarray, empty_score: float) -> np.ndarray:
    """Shape ``(n, 32)``: column ``mask`` belongs to ``mask``, column 0 to reading nothing."""
    return np.column_stack([np.full(len(scores), empty_score), scores])


def _score(scores: np.ndarray, mask: int) -> np.ndarray:
    column: np.ndarray = scores[:, mask - 1]
    return column


def _gains(scores: np.ndarray, bit: int) -> np.ndarray:
    """Shape ``(n, 15)``: what adding one structure gains over each non-empty subset without it."""
    without = [mask for mask in ALL_SUBSETS if not mask & bit]
    gains: np.ndarray = scores[:, [(mask | bit) - 1 for mask in without]] - scores[:, [mask - 1 for mask in without]]
    return gains


def _shapley_weights() -> np.ndarray:
    """Shape ``(32, 5)``: what each subset's value counts for in each structure's Shapley value."""
    weights = np.zeros((FULL_SUBSET + 1, N_STRUCTURES))
    for k, bit in enumerate(SINGLE_SUBSETS):
        for rest in range(FULL_SUBSET + 1):
            if not rest & bit:
                weight = factorial(size(rest)) * factorial(N_STRUCTURES - size(rest) - 1) / factorial(N_STRUCTURES)
                weights[rest | bit, k] += weight
                weights[rest, k] -= weight
    return weights


def _interaction_weights() -> np.ndarray:
    """Shape ``(32, 10)``: what each subset's value counts for in each pair's interaction index."""
    weights = np.zeros((FULL_SUBSET + 1, len(PAIRS)))
    for column, (i, j) in enumerate(PAIRS):
        first, second = SINGLE_SUBSETS[i], SINGLE_SUBSETS[j]
        for rest in range(FULL_SUBSET + 1):
            if not rest & (first | second):
                weight = factorial(size(rest)) * factorial(N_STRUCTURES - size(rest) - 2) / factorial(N_STRUCTURES - 1)
                weights[rest | first | second, column] += weight
                weights[rest | first, column] -= weight
                weights[rest | second, column] -= weight
                weights[rest, column] += weight
    return weights
