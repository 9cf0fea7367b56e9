"""Error bars: the paired bootstrap over episodes, and the spread over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mesa_pipeline.errors import ArtifactError


@dataclass(frozen=True)
class Interval:
    """A mean with its percentile bootstrap interval.

    Attributes:
        mean: Mean over the questions counted.
        low: Lower end.
        high: Upper end.
        confidence: Nominal coverage, such as 0.95.
        clusters: Number of episodes resampled; from a single one no spread can be learnt, and ``low == mean == high``.
    """

    mean: float
    low: float
    high: float
    confidence: float
    clusters: int

    @property
    def excludes_zero(self) -> bool:
        """Whether the difference is significant at this confidence; never so from a single episode."""
        return self.clusters > 1 and (self.low > 0.0 or self.high < 0.0)


class MeanStd(NamedTuple):
    """Mean and sample standard deviation (n - 1) of n values; one value has no deviation."""

    mean: float
    std: float | None
    n: int


def paired_bootstrap(differences: np.ndarray, clusters: np.ndarray, samples: int, confidence: float, seed: int) -> Interval:
    """Percentile interval of a mean paired difference, resampling whole episodes.

    Questions of one episode share its memories and so succeed or fail together; resampling questions would claim too narrow an
    interval. The mean is over questions, so an episode with more of them weighs more, in every resample too.

    Args:
        differences: Shape ``(n,)``, one paired difference per question; NaN, where either side is unscored, is left out.
        clusters: Shape ``(n,)``, episode of each question.
        samples: Number of resamples.
        confidence: Nominal coverage in (0, 1).
        seed: Seed of the resampling.

    Raises:
        ArtifactError: No difference is left.
    """
    paired = ~np.isnan(differences)
    if not paired.any():
        raise ArtifactError("no question has a score on both sides of the comparison; run `mesa sweep` again")
    (interval,) = clustered_bootstrap(differences[paired, np.newaxis], clusters[paired], samples, confidence, seed)
    return interval


def clustered_bootstrap(
    values: np.ndarray, clusters: np.ndarray, samples: int, confidence: float, seed: int
) -> tuple[Interval, ...]:
    """Percentile interval of the mean of each column, all columns in the same resamples; see ``paired_bootstrap``.

    Args:
        values: Shape ``(n, p)``, n at least 1, without NaN.
        clusters: Shape ``(n,)``, episode of each question.
        samples: Number of resamples.
        confidence: Nominal coverage in (0, 1).
        seed: Seed of the resampling.

    Returns:
        p intervals.
    """
    _, members = np.unique(clusters, return_inverse=True)
    counts = np.bincount(members)
    sums = np.column_stack([np.bincount(members, weights=column) for column in values.T])
    draws = np.random.default_rng(seed).multinomial(len(counts), np.full(len(counts), 1.0 / len(counts)), size=samples)
    means = (draws @ sums) / (draws @ counts)[:, np.newaxis]
    tail = (1.0 - confidence) / 2.0
    lows, highs = np.quantile(means, (tail, 1.0 - tail), axis=0)
    return tuple(
        Interval(float(total / counts.sum()), float(low), float(high), confidence, len(counts))
        for total, low, high in zip(sums.sum(axis=0), lows, highs, strict=True)
    )


def mean_and_sample_std(values: Sequence[float]) -> MeanStd:
    """Mean and sample standard deviation of at least one value."""
    return MeanStd(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None, len(values))
