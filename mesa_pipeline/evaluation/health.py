"""Whether a champion got worse since it was crowned, by how much, and where."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mesa_pipeline.config import NightlySettings
from mesa_pipeline.evaluation.showing import Showing
from mesa_pipeline.evaluation.statistics import Interval, clustered_interval, unpaired_interval

COMPARISONS = 3
"""Of one night: each has its share of what may go wrong (Bonferroni)."""


@dataclass(frozen=True)
class Shown:
    """A policy and reading all five structures, on the same questions in the same order."""

    policy: Showing
    everything: Showing

    def where(self, keep: np.ndarray) -> Self:
        """The questions where the boolean array ``keep``, shape ``(n,)``, is true."""
        return type(self)(self.policy.where(keep), self.everything.where(keep))

    def to_json(self) -> dict[str, Any]:
        return {"policy": self.policy.to_json(), "everything": self.everything.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``to_json``."""
        return cls(Showing.from_json(value["policy"]), Showing.from_json(value["everything"]))


@dataclass(frozen=True)
class DomainHealth:
    """One domain: what the champion is worth there tonight, against all five and against when it was crowned.

    Attributes:
        domain: Name of the domain.
        episodes: Held-out episodes tonight.
        questions: Their questions.
        worth: Mean of score less the price of the tokens; NaN never: domains without a score are left out.
        versus_all: Paired difference to reading all five.
        same_questions: Paired difference to when it was crowned; ``None`` where no question is the same.
    """

    domain: str
    episodes: int
    questions: int
    worth: float
    versus_all: Interval | None
    same_questions: Interval | None


@dataclass(frozen=True)
class Health:
    """A champion tonight; differences are in worth, and positive is better.

    Attributes:
        versus_all: Against reading all five structures tonight, paired.
        same_questions: Against itself when it was crowned, on the questions of then whose episodes are unchanged, paired: other
            than zero only where memories, evidence, reader or reward give something else now.
        new_questions: On the questions that are new or changed since, against those of then: other questions, so unpaired.
        all_on_new_questions: How reading all five moved between the same: about as far when the new questions are harder or
            easier for any policy.
        domains: The same by domain.
        min_episodes: With fewer, no difference is called significant.
    """

    versus_all: Interval | None
    same_questions: Interval | None
    new_questions: Interval | None
    all_on_new_questions: Interval | None
    domains: tuple[DomainHealth, ...]
    min_episodes: int

    @property
    def worse(self) -> tuple[str, ...]:
        """In what it is significantly worse, a phrase each; empty when it is in nothing."""
        compared = {
            "than reading all five structures": self.versus_all,
            "than when it was crowned, on the same questions": self.same_questions,
            "on new or changed questions than on those of when it was crowned": self.new_questions,
        }
        return tuple(phrase for phrase, found in compared.items() if found is not None and self._is_worse(found))

    def _is_worse(self, found: Interval) -> bool:
        return found.clusters >= self.min_episodes and found.high < 0

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``dataclasses.asdict``."""
        names = ("versus_all", "same_questions", "new_questions", "all_on_new_questions")
        found = {name: _interval(value[name]) for name in names}
        domains = tuple(
            DomainHealth(**{**domain, **{name: _interval(domain[name]) for name in ("versus_all", "same_questions")}})
            for domain in value["domains"]
        )
        return cls(**found, domains=domains, min_episodes=value["min_episodes"])


def health_of(now: Shown, crowned: Shown, unchanged: frozenset[str], lambda_: float, rule: NightlySettings) -> Health:
    """How a champion does.

    Args:
        now: The champion tonight, on every question that it was not made with.
        crowned: The same when it was crowned.
        unchanged: Ids of the episodes that are as they were then.
        lambda_: Price of a token.
        rule: Confidence that nothing is called worse by chance in one night, and number of episodes that it takes.
    """
    confidence = 1.0 - (1.0 - rule.confidence) / COMPARISONS
    places = crowned.policy.rows_of(now.policy)
    places[[episode not in unchanged for episode in now.policy.episodes]] = -1
    is_new = places < 0
    moved = _moved(now.policy, crowned.policy, places, lambda_)
    versus_all = now.policy.worth(lambda_) - now.everything.worth(lambda_)
    new = now.where(is_new)

    def over(values: np.ndarray, keep: np.ndarray) -> Interval | None:
        keep = keep & np.isfinite(values)
        return clustered_interval(values[keep], now.policy.episodes[keep], confidence) if keep.any() else None

    def domain_health(domain: str) -> DomainHealth:
        here = now.policy.domains == domain
        mean = float(np.nanmean(now.policy.worth(lambda_)[here]))
        part = now.policy.where(here)
        return DomainHealth(domain, part.clusters, len(part), mean, over(versus_all, here), over(moved, here))

    scored = np.isfinite(now.policy.scores)
    return Health(
        versus_all=over(versus_all, scored),
        same_questions=over(moved, scored),
        new_questions=_unpaired(new.policy, crowned.policy, lambda_, confidence),
        all_on_new_questions=_unpaired(new.everything, crowned.everything, lambda_, confidence),
        domains=tuple(domain_health(domain) for domain in sorted(set(now.policy.domains[scored]))),
        min_episodes=rule.min_episodes,
    )


def _moved(now: Showing, crowned: Showing, places: np.ndarray, lambda_: float) -> np.ndarray:
    """Worth now less worth then, by question of now; NaN where there was no such question then."""
    if not len(crowned):
        return np.full(len(now), np.nan)
    moved: np.ndarray = np.where(places < 0, np.nan, now.worth(lambda_) - crowned.worth(lambda_)[places])
    return moved


def _unpaired(now: Showing, then: Showing, lambda_: float, confidence: float) -> Interval | None:
    values, earlier = now.worth(lambda_), then.worth(lambda_)
    if not (np.isfinite(values).any() and np.isfinite(earlier).any()):
        return None
    return unpaired_interval(values, now.episodes, earlier, then.episodes, confidence)


def _interval(value: Mapping[str, Any] | None) -> Interval | None:
    return Interval(**value) if value else None
