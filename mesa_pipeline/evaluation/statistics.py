"""Error bars: the paired bootstrap over episodes, Student's intervals from clustered variance, and the spread over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mesa_pipeline.errors import ArtifactError


@dataclass(frozen=True)
class Interval:
    """A mean with its interval.

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


def clustered_interval(values: np.ndarray, clusters: np.ndarray, confidence: float) -> Interval:
    """Student's interval of a mean over questions whose episodes are independent, not the questions.

    The variance is that of the ratio of two sums over G episodes, with G - 1 degrees of freedom. Unlike a percentile of
    resamples it holds its level for few episodes and far out in the tails, where a bootstrap would need millions of
    resamples (docs/decisions/0111-promotion.md).

    Args:
        values: Shape ``(n,)``; NaN, an unscored question, is left out.
        clusters: Shape ``(n,)``, episode of each question.
        confidence: Nominal coverage in (0, 1).

    Raises:
        ArtifactError: No value is left.
    """
    return _interval(_mean_and_variance(values, clusters), confidence)


def unpaired_interval(
    values: np.ndarray, clusters: np.ndarray, earlier: np.ndarray, earlier_clusters: np.ndarray, confidence: float
) -> Interval:
    """Interval of the mean of ``values`` minus that of ``earlier``, of other episodes (Welch); see ``clustered_interval``.

    Its ``clusters`` are those of the smaller side.
    """
    sides = [_mean_and_variance(values, clusters), _mean_and_variance(earlier, earlier_clusters)]
    variance = sum(side.variance for side in sides)
    freedom = sum(side.variance**2 / side.freedom for side in sides if side.freedom)
    difference = _Mean(
        mean=sides[0].mean - sides[1].mean,
        variance=variance,
        clusters=min(side.clusters for side in sides),
        freedom=variance**2 / freedom if freedom else min(side.freedom for side in sides),
    )
    return _interval(difference, confidence)


class _Mean(NamedTuple):
    """A mean with its variance from G clusters; one cluster has no variance and no degree of freedom."""

    mean: float
    variance: float
    clusters: int
    freedom: float


def _mean_and_variance(values: np.ndarray, clusters: np.ndarray) -> _Mean:
    scored = ~np.isnan(values)
    if not scored.any():
        raise ArtifactError("no question has the scores that a comparison needs; run `mesa sweep` again")
    names, members = np.unique(clusters[scored], return_inverse=True)
    counts, sums = np.bincount(members), np.bincount(members, weights=values[scored])
    mean, n = float(sums.sum() / counts.sum()), len(names)
    residuals = sums - mean * counts
    variance = n / (n - 1) * float(residuals @ residuals) / float(counts.sum()) ** 2 if n > 1 else 0.0
    return _Mean(mean, variance, n, n - 1)


def _interval(found: _Mean, confidence: float) -> Interval:
    if found.clusters < 2:
        return Interval(found.mean, found.mean, found.mean, confidence, found.clusters)
    from scipy.special import stdtrit  # takes a third of a second to import

    half = float(stdtrit(found.freedom, (1.0 + confidence) / 2.0)) * found.variance**0.5
    return Interval(found.mean, found.mean - half, found.mean + half, confidence, found.clusters)
