"""What each subset is worth on average, learnt from training outcomes of which some may be unscored."""

from collections.abc import Sequence

import numpy as np

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.subsets import ALL_SUBSETS

TIE_TOLERANCE = 1e-12
"""Utilities closer than this are equal: summation order must not decide between subsets."""


def relative_utilities(matrix: OutcomeMatrix, lambda_: float) -> np.ndarray:
    """Score minus token price of each cell, relative to the question's own average.

    Taking out each question's level changes no comparison between subsets when every cell is scored. When some are not, it
    keeps a subset from looking good for having failed on hard questions.

    Args:
        matrix: Outcomes of n questions.
        lambda_: Price of one evidence token, in score.

    Returns:
        Shape ``(n, 31)``; NaN where unscored.

    Raises:
        ArtifactError: Some cells were never swept, or none has a score.
    """
    missing = int(np.isnan(matrix.tokens).sum())
    if missing:
        raise ArtifactError(f"{missing} of {matrix.tokens.size} training outcomes are missing; make them with `mesa sweep`")
    if matrix.unscored == matrix.scores.size:
        raise ArtifactError("no training outcome has a score; see what failed with `mesa sweep`, then run it again")
    utilities = matrix.scores - lambda_ * matrix.tokens
    scored = ~np.isnan(utilities)
    level = np.where(scored, utilities, 0.0).sum(axis=1) / np.maximum(scored.sum(axis=1), 1)
    centred: np.ndarray = utilities - level[:, np.newaxis]
    return centred


def global_means(utilities: np.ndarray) -> np.ndarray:
    """Mean utility of each subset, shape ``(31,)``; minus infinity for one that was never scored."""
    counts = (~np.isnan(utilities)).sum(axis=0)
    sums = np.nansum(utilities, axis=0)
    means: np.ndarray = np.divide(sums, counts, out=np.full(utilities.shape[1], -np.inf), where=counts > 0)
    return means


def shrunk_means(utilities: np.ndarray, parent: np.ndarray, strength: float) -> np.ndarray:
    """Mean utility of each subset in one group, pulled towards the estimate of a wider group.

    Args:
        utilities: Shape ``(m, 31)``, the group's own; m may be 0.
        parent: Shape ``(31,)``, estimate of the wider group.
        strength: Pseudo-questions the parent counts for. 0 leaves the group's own mean wherever it has a score, infinity the
            parent.

    Returns:
        Shape ``(31,)``.
    """
    counts = (~np.isnan(utilities)).sum(axis=0)
    own = counts > 0
    means = np.nansum(utilities, axis=0)[own] / counts[own]
    weight = counts[own] / (counts[own] + strength)
    estimate = parent.copy()
    estimate[own] = weight * means + (1.0 - weight) * parent[own]
    return estimate


def best_subset(utilities: np.ndarray, tokens: np.ndarray, allowed: Sequence[int] = ALL_SUBSETS) -> int:
    """Mask of highest utility among ``allowed``; ties go to fewer tokens, then to the smaller mask.

    Args:
        utilities: Shape ``(31,)``.
        tokens: Shape ``(31,)``, mean evidence tokens of each subset.
        allowed: Masks to choose from.

    Raises:
        ArtifactError: None of them was ever scored.
    """
    best = max(utilities[mask - 1] for mask in allowed)
    if best == -np.inf:
        raise ArtifactError("none of the subsets to choose from has a scored training outcome; run `mesa sweep` again")
    tied = [mask for mask in allowed if utilities[mask - 1] >= best - TIE_TOLERANCE]
    return min(tied, key=lambda mask: (tokens[mask - 1], mask))
