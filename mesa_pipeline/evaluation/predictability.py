"""How much better than reading all five one could do, held out: an honest figure to set beside the oracle.

The oracle takes the best of 31 outcomes of each question with hindsight. Shuffling which question has which row of outcomes
leaves it as it is, so it says nothing about what can be foreseen; it is a bound and no goal. Asking the same question again
does not help either: a deterministic reader answers the same, and with one outcome a cell there is nothing to average. What
can be asked is how much of the gain carries over to other questions. Each estimate here chooses by some questions and
measures on others, whole episodes apart unless said otherwise, so none is flattered by the choosing:

- one subset for all; one for each cell of the labels;
- for each question by a ridge regression of all 31 outcomes on what can be seen of it. The features are those of the failure
  cards; a policy with better ones can do better, so this is a lower bound on what can be foreseen;
- for each question by the other questions of its own episode. No policy sees those, as they are not asked yet: a gain here
  beyond the others would say that an episode has a taste of its own that the features miss.

A reader or judge that answers differently each time needs one thing more: the oracle chosen by one repeat, measured on another.
"""

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from mesa_pipeline.evaluation.observables import Features, observable_features
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.policies.estimates import best_subset, shrunk_means

FOLDS = 5
PENALTIES = 10.0 ** np.arange(-1, 6)


def episode_folds(episode_ids: np.ndarray) -> np.ndarray:
    """Fold of each question, shape ``(n,)``: whole episodes in the order of a hash of their ids, at most ``FOLDS`` folds."""
    names, episodes = np.unique(episode_ids, return_inverse=True)
    digests = [hashlib.sha256(str(name).encode("utf-8", "backslashreplace")).digest() for name in names]
    fold_of = np.zeros(len(names), dtype=np.int64)
    fold_of[sorted(range(len(names)), key=digests.__getitem__)] = np.arange(len(names)) % FOLDS
    folds: np.ndarray = fold_of[episodes]
    return folds


def choose_by_cells(matrix: OutcomeMatrix, utilities: np.ndarray, cells: np.ndarray, strength: float) -> np.ndarray:
    """The best subset of each question's cell, by the questions of other folds; small cells lean on the mean of all.

    Args:
        matrix: n different questions, fully scored, of at least two episodes.
        utilities: Shape ``(n, 31)``, score less token price.
        cells: Shape ``(n,)``, any hashable values; all equal for one subset for all.
        strength: Pseudo-questions that the mean of all counts for.

    Returns:
        Shape ``(n,)``, masks.
    """
    choices = np.zeros(len(matrix), dtype=np.int64)
    folds = episode_folds(matrix.episode_ids)
    for fold in np.unique(folds):
        known = folds != fold
        tokens, overall = matrix.tokens[known].mean(axis=0), utilities[known].mean(axis=0)
        for cell in dict.fromkeys(cells[~known]):
            inside = np.array([other == cell for other in cells], dtype=bool)
            estimate = shrunk_means(utilities[known & inside], overall, strength)
            choices[~known & inside] = best_subset(estimate, tokens)
    return choices


def choose_by_siblings(matrix: OutcomeMatrix, utilities: np.ndarray, strength: float) -> np.ndarray:
    """The best subset by the other questions of the same episode, leaning on the mean of the other episodes.

    For the arguments see ``choose_by_cells``.
    """
    choices = np.zeros(len(matrix), dtype=np.int64)
    _, episodes = np.unique(matrix.episode_ids, return_inverse=True)  # numpy's == drops NULs at the end of a text
    for episode in range(episodes.max() + 1):
        inside = episodes == episode
        overall, tokens = utilities[~inside].mean(axis=0), matrix.tokens[~inside].mean(axis=0)
        rows = np.flatnonzero(inside)
        for row in rows:
            choices[row] = best_subset(shrunk_means(utilities[rows[rows != row]], overall, strength), tokens)
    return choices


def choose_by_features(matrix: OutcomeMatrix, utilities: np.ndarray, labels: bool) -> np.ndarray:
    """The subset that a ridge regression on the other folds expects most of, given what can be seen of the question.

    Args:
        matrix: n different questions, fully scored, of at least two episodes.
        utilities: Shape ``(n, 31)``, score less token price.
        labels: Whether the benchmark's labels can be seen.

    Returns:
        Shape ``(n,)``, masks.
    """
    design = _design([observable_features(question) for question in policy_inputs(matrix, labels)])
    centred = utilities - utilities.mean(axis=1, keepdims=True)
    choices = np.zeros(len(matrix), dtype=np.int64)
    folds = episode_folds(matrix.episode_ids)
    for fold in np.unique(folds):
        known = folds != fold
        expected = _ridge(design[known], centred[known], design[~known])
        tokens = matrix.tokens[known].mean(axis=0)
        choices[~known] = [best_subset(row, tokens) for row in expected]
    return choices


def _design(features: Sequence[Features]) -> np.ndarray:
    """Shape ``(n, p)``: forms and label values as 0 or 1, numbers by their logarithm, 0 where absent."""
    columns: dict[tuple[str, str], np.ndarray] = {}
    for row, known in enumerate(features):
        for name, value in known.items():
            key = (name, value if isinstance(value, str) else "")
            columns.setdefault(key, np.zeros(len(features)))[row] = 1.0 if isinstance(value, str) else _compressed(value)
    return np.column_stack([columns[key] for key in sorted(columns)])


def _compressed(number: float) -> float:
    """Its logarithm, sign kept, so that no long trajectory outweighs all others; booleans are numbers too."""
    return math.copysign(math.log1p(abs(number)), number)


def _ridge(design: np.ndarray, targets: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Predictions for the queries, shape ``(m, 31)``; the penalty with the least generalised cross-validation error is used."""
    centre, scale = design.mean(axis=0), design.std(axis=0)
    used = scale > 0
    standard = (design[:, used] - centre[used]) / scale[used]
    level = targets.mean(axis=0)
    values, vectors = np.linalg.eigh(standard.T @ standard)
    values = np.maximum(values, 0.0)
    projected = vectors.T @ standard.T @ (targets - level)

    def weights(penalty: float) -> np.ndarray:
        found: np.ndarray = vectors @ (projected / (values + penalty)[:, np.newaxis])
        return found

    def error(penalty: float) -> float:
        residual = targets - level - standard @ weights(penalty)
        freedom = len(design) - 1 - float((values / (values + penalty)).sum())
        return float((residual**2).sum()) / freedom**2 if freedom > 0 else math.inf

    fitted = weights(min(PENALTIES, key=error))
    predictions: np.ndarray = level + (queries[:, used] - centre[used]) / scale[used] @ fitted
    return predictions
