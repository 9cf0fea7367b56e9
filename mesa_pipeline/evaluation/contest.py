"""Whether a challenger takes the champion's place: on questions that neither was made with, and not by luck of many nights."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from mesa_pipeline import numerals
from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.config import NightlySettings
from mesa_pipeline.evaluation.showing import Showing
from mesa_pipeline.evaluation.statistics import Interval, clustered_interval

Decision = Literal["first", "worse than all", "promoted", "kept", "too few", "same choices", "compared before", "waiting"]
CROWNED: frozenset[Decision] = frozenset({"first", "promoted"})
COUNTED: frozenset[Decision] = frozenset({"promoted", "kept"})


@dataclass(frozen=True)
class Contest:
    """What became of a challenger.

    Attributes:
        decision: ``first``: there was no champion; ``worse than all``: there was none, and it is significantly worse than
            reading all five structures; ``promoted``: it is significantly better; ``kept``: it is not; the others: it was not
            compared, and why.
        reason: The decision in a sentence.
        episodes: Episodes that it was decided on.
        questions: Their questions.
        number: Comparisons with this champion so far, this one included where there was one.
        difference: In worth: challenger minus champion, or minus all five where there was no champion; ``None`` without one.
        evidence: Names what was compared: equal for the same choices with the same outcomes.
        setting: Names the models and settings it was compared under.
    """

    decision: Decision
    reason: str
    episodes: int
    questions: int
    number: int = 0
    difference: Interval | None = None
    evidence: str = ""
    setting: str = ""

    @property
    def is_crowned(self) -> bool:
        """Whether the challenger is the champion from now on."""
        return self.decision in CROWNED

    @property
    def is_counted(self) -> bool:
        """Whether a comparison was made, which uses up a part of what may go wrong."""
        return self.decision in COUNTED

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``dataclasses.asdict``."""
        difference = value["difference"]
        return cls(**{**value, "difference": Interval(**difference) if difference else None})


def confidence_of(total: float, number: int) -> float:
    """Confidence of the interval of the ``number``-th comparison with the same champion.

    Of what may go wrong in all, ``1 - total``, it may use the share ``1 / (number (number + 1))``. These shares add up to one,
    so however many nights there are, the chance that a champion is ever replaced by one that is no better stays below
    ``(1 - total) / 2``, whatever the nights have in common (union bound; alpha spending after Lan and DeMets, 1983).
    """
    return 1.0 - (1.0 - total) / (number * (number + 1))


def first_contest(challenger: Showing, everything: Showing, lambda_: float, rule: NightlySettings) -> Contest:
    """Whether the challenger becomes the first champion: unless it is significantly worse than reading all five.

    Args:
        challenger: On questions that it was not made with.
        everything: Reading all five, on the same questions in the same order.
        lambda_: Price of a token.
        rule: Confidence and number of episodes that a decision needs.
    """
    differences = challenger.worth(lambda_) - everything.worth(lambda_)
    counts = _Counts.of(differences, challenger.episodes)
    if counts.episodes < rule.min_episodes:
        reason = f"there was no champion; {_too_few(counts, rule)} to tell whether it is worse than reading all five structures"
        return Contest("first", reason, *counts)
    found = clustered_interval(differences, challenger.episodes, rule.confidence)
    if found.high < 0:
        reason = f"no champion: the challenger is worse than reading all five structures, {_points(found)}"
        return Contest("worse than all", reason, *counts, difference=found)
    reason = f"there was no champion; the challenger is not worse than reading all five structures: {_points(found)}"
    return Contest("first", reason, *counts, difference=found)


def contest(
    challenger: Showing, champion: Showing, lambda_: float, setting: str, earlier: Sequence[Contest], rule: NightlySettings
) -> Contest:
    """Whether the challenger takes the champion's place.

    Every comparison makes the next one stricter, so none is made without need: not of the same choices on the same outcomes,
    and under the same models and settings not before the episodes have grown by ``nightly.growth``.

    Args:
        challenger: On questions that neither policy was made with.
        champion: On the same questions in the same order.
        lambda_: Price of a token.
        setting: Names the models and settings of the outcomes and of the search.
        earlier: The comparisons with this champion so far, oldest first.
        rule: Confidence and number of episodes that a decision needs.
    """
    differences = challenger.worth(lambda_) - champion.worth(lambda_)
    counts, number = _Counts.of(differences, challenger.episodes), len(earlier)
    if counts.episodes < rule.min_episodes:
        return Contest("too few", f"{_too_few(counts, rule)} to promote on", *counts, number=number)
    if _equal(challenger, champion):
        return Contest("same choices", "challenger and champion read the same for every question", *counts, number=number)
    evidence = _evidence(challenger, differences)
    if evidence in {other.evidence for other in earlier}:
        return Contest("compared before", "the same choices were compared on the same outcomes before", *counts, number=number)
    due = _due(setting, earlier, rule)
    if counts.episodes < due:
        reason = f"{counts.episodes} held-out episodes; the champion is challenged again from {due} on (nightly.growth)"
        return Contest("waiting", reason, *counts, number=number)
    number += 1
    found = clustered_interval(differences, challenger.episodes, confidence_of(rule.confidence, number))
    decision: Decision = "promoted" if found.low > 0 else "kept"
    said = "better than the champion" if decision == "promoted" else "not shown to be better than the champion"
    return Contest(decision, f"the challenger is {said}: {_points(found)}", *counts, number, found, evidence, setting)


class _Counts(NamedTuple):
    episodes: int
    questions: int

    @classmethod
    def of(cls, differences: np.ndarray, episodes: np.ndarray) -> Self:
        """Of what has a difference."""
        known = np.isfinite(differences)
        return cls(len(set(episodes[known])), int(known.sum()))


def _due(setting: str, earlier: Sequence[Contest], rule: NightlySettings) -> int:
    """Number of episodes from which on another comparison is worth its price; 0 where the last was under other settings."""
    if not earlier or earlier[-1].setting != setting:
        return 0
    return math.ceil(earlier[-1].episodes * (1.0 + rule.growth))


def _equal(challenger: Showing, champion: Showing) -> bool:
    same_scores = np.array_equal(challenger.scores, champion.scores, equal_nan=True)
    return same_scores and np.array_equal(challenger.tokens, champion.tokens)


def _evidence(shown: Showing, differences: np.ndarray) -> str:
    rows = zip(shown.questions.tolist(), differences.tolist(), strict=True)
    return fingerprint(sorted([question, None if np.isnan(value) else value] for question, value in rows))


def _too_few(counts: _Counts, rule: NightlySettings) -> str:
    return f"{counts.episodes} held-out episodes with scores are too few (nightly.min_episodes: {rule.min_episodes})"


def _points(found: Interval) -> str:
    """A difference with its interval in words, times a hundred."""
    ends = f"{numerals.confidence(found.confidence)} interval {numerals.interval(found.low, found.high)}"
    return f"{numerals.difference(found.mean)} ({ends}) on {found.clusters} episodes"
