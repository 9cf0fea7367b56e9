"""Subgroup discovery: which questions, described by what can be seen of them, would gain most from reading one other subset.

A beam search over predicates of one or two conditions. What a cluster promises is measured honestly: the other subset is
chosen on half of the episodes and its gain measured on the other half, both ways, and one standard error is taken off, so
that a small or lucky cluster ranks below a large or sure one. The choice among hundreds of predicates favours luck all the
same: each cluster says whether it stands out from the best that so many predicates would show where there is nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from mesa_pipeline.evaluation.observables import Condition, Features, FeatureValue, Predicate

MIN_QUESTIONS = 10
MAX_SHARE = 2 / 3
"""Of all questions: what holds for nearly all of them sets none apart."""
MIN_CUT = 0.2
"""Share of a condition's questions that a second one must exclude, to be worth saying."""
MIN_SURE_EPISODES = 5
"""Fewer say too little about how episodes differ."""
BEAM = 12
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
THRESHOLD_DIGITS = 3
MAX_VALUES = 24
"""Most frequent values of a label that are tried."""
MAX_OVERLAP = 0.5
"""Largest share of their union that the questions of two clusters may have in common."""
CHUNK = 256
DECIMALS = 9
"""Sums in another order differ in the last bits, which must decide nothing."""


@dataclass(frozen=True)
class Cluster:
    """Questions that have something in common.

    Attributes:
        predicate: What they have in common.
        members: Boolean, shape ``(n,)``.
        gain: Mean gain from reading one other subset, chosen and measured on different episodes.
        error: Standard error of ``gain``: the larger of that over episodes and that over questions.
        freedom: Degrees of freedom of ``error``: episodes or questions, less one.
        beyond_luck: Whether it has at least ``MIN_SURE_EPISODES``, and a gain less likely by chance than the largest of as many
            standard normal numbers as there are predicates in reach, which is expected to be at most sqrt(2 ln number).
    """

    predicate: Predicate
    members: np.ndarray
    gain: float
    error: float
    freedom: int
    beyond_luck: bool = False

    @property
    def worth(self) -> float:
        """What clusters are ranked by: the gain less its standard error, times the square root of the number of questions.

        With the number itself (total gain) the best cluster is one diluted with questions that gain nothing; without it, the
        smallest.
        """
        return round(sqrt(float(self.members.sum())) * (self.gain - self.error), DECIMALS)


@dataclass(frozen=True)
class Gains:
    """What reading each other subset would have gained.

    Attributes:
        values: Shape ``(n, 31)``, without NaN; column ``mask - 1`` belongs to ``mask``.
        episodes: Shape ``(n,)``: episode of each question, as integers from 0.
        halves: Boolean, one for each episode: which half of the data it is in.
    """

    values: np.ndarray
    episodes: np.ndarray
    halves: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, episode_ids: np.ndarray) -> "Gains":
        """Halve the episodes by a hash of their ids, so that neighbours in the data, which are often alike, are separated."""
        names, episodes = np.unique(episode_ids, return_inverse=True)
        digests = [hashlib.sha256(name.encode("utf-8", "backslashreplace")).digest() for name in names]
        halves = np.zeros(len(names), dtype=bool)
        halves[sorted(range(len(names)), key=digests.__getitem__)[::2]] = True
        return cls(values, episodes, halves)


def find_clusters(features: Sequence[Features], gains: Gains, limit: int) -> tuple[Cluster, ...]:
    """The clusters of most worth that have little in common with one another, best first.

    Args:
        features: Of each of the n questions, as ``observable_features`` gives them.
        gains: Of the same questions.
        limit: Most clusters to return.

    Returns:
        Clusters of at least ``MIN_QUESTIONS``, from both halves of the episodes, that gain more than their standard error;
        those beyond luck come first.
    """
    columns = {
        condition: np.array([condition.holds(known) for known in features], dtype=bool) for condition in _conditions(features)
    }
    singles = _sets_apart({Predicate((condition,)): column for condition, column in columns.items()})
    best = [cluster.predicate.conditions[0] for cluster in _ranked(_measure(singles, gains))[:BEAM]]
    pairs = {
        Predicate(tuple(sorted((first, second)))): columns[first] & columns[second]
        for first in best
        for second in columns
        if _is_worth_saying(columns[first], columns[second])
    }
    found = _measure(_sets_apart({**singles, **pairs}), gains)
    in_reach = len(columns) * (len(columns) + 1) // 2
    return tuple(islice(_distinct(_ranked([_judged(cluster, gains, in_reach) for cluster in found])), limit))


def _conditions(features: Sequence[Features]) -> list[Condition]:
    """Every value of a label or form, and both sides of some thresholds of a number."""
    values: dict[str, list[FeatureValue]] = {}
    for known in features:
        for name, value in known.items():
            values.setdefault(name, []).append(value)
    return [condition for name in sorted(values) for condition in _conditions_on(name, values[name])]


def _conditions_on(name: str, values: Sequence[FeatureValue]) -> list[Condition]:
    if isinstance(values[0], bool):
        return [Condition(name, "=", value) for value in (False, True)]
    if isinstance(values[0], str):
        frequent = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
        return [Condition(name, "=", value) for value, _ in frequent[:MAX_VALUES]]
    cuts = np.quantile(np.array(values, dtype=float), QUANTILES, method="lower")
    thresholds = sorted({float(f"{cut:.{THRESHOLD_DIGITS}g}") for cut in cuts})
    return [Condition(name, comparison, cut) for cut in thresholds for comparison in ("<=", ">")]


def _is_worth_saying(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether each of two conditions excludes enough of what the other holds for."""
    both = (first & second).sum()
    return bool(both <= (1 - MIN_CUT) * min(first.sum(), second.sum()))


def _sets_apart(candidates: Mapping[Predicate, np.ndarray]) -> dict[Predicate, np.ndarray]:
    """Predicates that hold for neither too few questions nor too many; of those that hold for the same ones the first."""
    distinct: dict[bytes, Predicate] = {}
    for predicate, members in candidates.items():
        if MIN_QUESTIONS <= members.sum() <= MAX_SHARE * len(members):
            distinct.setdefault(np.packbits(members).tobytes(), predicate)
    return {predicate: candidates[predicate] for predicate in distinct.values()}


def _measure(candidates: Mapping[Predicate, np.ndarray], gains: Gains) -> list[Cluster]:
    """The clusters that gain more than their standard error."""
    predicates, found = list(candidates), list[Cluster]()
    for start in range(0, len(predicates), CHUNK):
        chunk = predicates[start : start + CHUNK]
        members = np.stack([candidates[predicate] for predicate in chunk])
        measured = _held_out(members, gains)
        found += [
            Cluster(predicate, row, float(gain), float(error), int(freedom))
            for predicate, row, gain, error, freedom in zip(chunk, members, *measured, strict=True)
            if gain > error
        ]
    return found


def _judged(cluster: Cluster, gains: Gains, in_reach: int) -> Cluster:
    """The cluster, with whether it is beyond luck among so many predicates."""
    is_sure = len(set(gains.episodes[cluster.members])) >= MIN_SURE_EPISODES
    return replace(cluster, beyond_luck=is_sure and _normal_deviate(cluster) > sqrt(2 * log(in_reach)))


def _normal_deviate(cluster: Cluster) -> float:
    """The standard normal number as unlikely as the gain over its error is under Student's t (Wallace, 1959)."""
    if not cluster.error:
        return inf
    freedom = cluster.freedom
    return sqrt(freedom * log1p((cluster.gain / cluster.error) ** 2 / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)


class _HeldOut(NamedTuple):
    """Gain of each of p clusters and its standard error: shape ``(p,)``, NaN where a half of the episodes has no member."""

    gains: np.ndarray
    errors: np.ndarray
    freedom: np.ndarray


def _held_out(members: np.ndarray, gains: Gains) -> _HeldOut:
    """Choose each cluster's subset on one half and measure it on the other, both ways; ``members`` has shape ``(p, n)``."""
    inside = members.astype(float)
    own = gains.halves[gains.episodes]
    by_question = np.full(members.shape, np.nan)
    for half in (False, True):
        totals = np.round(inside[:, own != half] @ gains.values[own != half], DECIMALS)
        known = members[:, own != half].any(axis=1)
        by_question[np.ix_(known, own == half)] = gains.values[own == half].T[totals[known].argmax(axis=1)]
    counts = inside.sum(axis=1)
    spread = np.where(members, by_question, 0.0)
    means = spread.sum(axis=1) / counts
    spread -= inside * means[:, np.newaxis]
    one_hot = np.eye(len(gains.halves))[gains.episodes]
    episodes = (inside @ one_hot > 0).sum(axis=1)
    over_questions = (spread**2).sum(axis=1) * counts / np.maximum(counts - 1, 1)
    over_episodes = ((spread @ one_hot) ** 2).sum(axis=1) * episodes / np.maximum(episodes - 1, 1)
    return _HeldOut(
        gains=means,
        errors=np.sqrt(np.maximum(over_questions, over_episodes)) / counts,
        freedom=np.where(over_episodes >= over_questions, episodes, counts) - 1,
    )


def _ranked(clusters: Sequence[Cluster]) -> list[Cluster]:
    """Those beyond luck first, then by falling worth; of equal ones the simpler first."""
    return sorted(clusters, key=lambda c: (not c.beyond_luck, -c.worth, len(c.predicate.conditions), c.predicate))


def _distinct(clusters: Sequence[Cluster]) -> Iterator[Cluster]:
    """Those that overlap little with every one before them."""
    taken: list[np.ndarray] = []
    for cluster in clusters:
        if all((cluster.members & other).sum() <= MAX_OVERLAP * (cluster.members | other).sum() for other in taken):
            taken.append(cluster.members)
            yield cluster
