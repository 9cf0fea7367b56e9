"""Which policy of the archive to freeze.

The default is the paper's: the highest J - lambda C on validation (Algorithm 1, line 13). Picking the best of many noisy
figures inflates the winner's; the others take that into account, and depart from the paper:

- ``lcb``: the highest lower bound, ``lcb_z`` standard errors below the mean;
- ``one-se-cheapest``: the fewest tokens among those within one standard error, of the paired difference, of the best;
- ``crossfit``: the highest mean over both splits, each question scored by a fit on the other split.

Standard errors are over episodes, since questions of one episode share its history.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.config import SearchSettings
from mesa_pipeline.errors import TooFewEpisodes
from mesa_pipeline.evaluation.evaluate import outcomes_of
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.search.archive import OBJECTIVE_DIGITS, best_entry
from mesa_pipeline.search.records import ArchiveEntry


@dataclass(frozen=True)
class Evidence:
    """What there is to select by.

    Attributes:
        entries: The archive.
        validation: Outcomes of n questions, fully scored.
        choices: By entry id, its masks on them: shape ``(n,)``.
        crossfit: Mean objective of an entry over both splits, each scored by a fit on the other; asked only by ``crossfit``.
            ``None`` for one that cannot be fitted on the other split.
    """

    entries: Sequence[ArchiveEntry]
    validation: OutcomeMatrix
    choices: Mapping[str, np.ndarray]
    crossfit: Callable[[ArchiveEntry], float | None]

    def objectives(self, entry: ArchiveEntry, lambda_: float) -> np.ndarray:
        """Score less token price of each validation question: shape ``(n,)``."""
        found = outcomes_of(self.validation, self.choices[entry.id], entry.id)
        objectives: np.ndarray = found.scores - lambda_ * found.tokens
        return objectives

    def error(self, values: np.ndarray) -> float:
        """Standard error of the mean of a value for each validation question."""
        return clustered_standard_error(values, self.validation.episode_ids)


def select_entry(evidence: Evidence, settings: SearchSettings) -> ArchiveEntry:
    """The entry to freeze, by the rule of ``settings.select``; ties go to fewer tokens, then to the earliest.

    Raises:
        TooFewEpisodes: The rule needs standard errors, and there is one validation episode alone.
    """
    return RULES[settings.select](evidence, settings)


def clustered_standard_error(values: np.ndarray, clusters: np.ndarray) -> float:
    """Standard error of the mean of values that are alike within clusters.

    Args:
        values: Shape ``(n,)``.
        clusters: Shape ``(n,)``, the cluster of each.

    Returns:
        Square root of G / (G - 1) times the sum over the G clusters of the squared sum of deviations, over n.

    Raises:
        TooFewEpisodes: There are fewer than two clusters, which say nothing of how much clusters differ.
    """
    names, members = np.unique(clusters, return_inverse=True)
    count = len(names)
    if count < 2:
        raise TooFewEpisodes("search.select: standard errors need two validation episodes; use argmax or another splits.ratio")
    sums = np.bincount(members, weights=values - values.mean(), minlength=count)
    return float(np.sqrt(count / (count - 1) * (sums**2).sum()) / len(values))


def _argmax(evidence: Evidence, settings: SearchSettings) -> ArchiveEntry:
    return best_entry(evidence.entries)


def _lower_bound(evidence: Evidence, settings: SearchSettings) -> ArchiveEntry:
    def bound(entry: ArchiveEntry) -> float:
        values = evidence.objectives(entry, settings.lambda_)
        return float(values.mean()) - settings.lcb_z * evidence.error(values)

    return _highest(evidence.entries, {entry.id: bound(entry) for entry in evidence.entries})


def _cheapest_of_best(evidence: Evidence, settings: SearchSettings) -> ArchiveEntry:
    best = best_entry(evidence.entries)
    leading = evidence.objectives(best, settings.lambda_)

    def is_close(entry: ArchiveEntry) -> bool:
        behind = leading - evidence.objectives(entry, settings.lambda_)
        return float(behind.mean()) <= evidence.error(behind)

    close = [entry for entry in evidence.entries if is_close(entry)]
    return min(close, key=lambda entry: (entry.validation.tokens, -entry.validation.objective))


def _crossfitted(evidence: Evidence, settings: SearchSettings) -> ArchiveEntry:
    means = {entry.id: evidence.crossfit(entry) for entry in evidence.entries}
    return _highest(
        [entry for entry in evidence.entries if means[entry.id] is not None],
        {id: mean for id, mean in means.items() if mean is not None},
    )


def _highest(entries: Sequence[ArchiveEntry], worth: Mapping[str, float]) -> ArchiveEntry:
    return min(entries, key=lambda entry: (-round(worth[entry.id], OBJECTIVE_DIGITS), entry.validation.tokens))


RULES: dict[str, Callable[[Evidence, SearchSettings], ArchiveEntry]] = {
    "argmax": _argmax,
    "lcb": _lower_bound,
    "one-se-cheapest": _cheapest_of_best,
    "crossfit": _crossfitted,
}
