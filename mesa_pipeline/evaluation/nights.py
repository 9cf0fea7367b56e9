"""What is remembered of each night, and of each time that a champion was put in place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from mesa_pipeline.evaluation.contest import Contest
from mesa_pipeline.evaluation.health import Health
from mesa_pipeline.evaluation.showing import Standing

DECIMALS = 6
How = Literal["first", "promoted", "by hand", "rolled back"]


@dataclass(frozen=True)
class Changes:
    """What is not as it was when the champion was crowned: ids of episodes, and settings or models in a line each."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    made_with: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.changed or self.removed or self.made_with)


@dataclass(frozen=True)
class Night:
    """One re-evaluation.

    Attributes:
        at: When, as ISO 8601.
        key: Fingerprint of all that it was decided on.
        tenure: Number of the reign after the night; ``None`` where there is no champion.
        champion: Who was champion before it; ``None`` where nobody was, or none of its questions has a score.
        challenger: Who was searched for; ``None`` where none of its questions has a score.
        contest: What became of the challenger.
        health: How the champion did.
        changes: What is not as it was when the champion was crowned.
    """

    at: str
    key: str
    tenure: int | None
    champion: Standing | None
    challenger: Standing | None
    contest: Contest
    health: Health | None
    changes: Changes

    @property
    def worse(self) -> tuple[str, ...]:
        """In what the champion got significantly worse, a phrase each."""
        return self.health.worse if self.health else ()

    @property
    def verdict(self) -> str:
        """The night in a sentence or two."""
        got_worse = f"The champion is significantly worse {' and '.join(self.worse)}. " if self.worse else ""
        reason = self.contest.reason
        return f"{got_worse}{reason[:1].upper()}{reason[1:]}."

    @property
    def metrics(self) -> dict[str, float]:
        """Its figures by name; scores, worth and differences in [-1, 1], absent where unknown."""
        found = {"worse": float(bool(self.worse)), "comparisons": float(self.contest.number)}
        for name, standing in (("champion", self.champion), ("challenger", self.challenger)):
            if standing:
                found |= {f"{name}_score": standing.score.mean, f"{name}_tokens": standing.tokens}
                found |= {f"{name}_versus_all": standing.versus_all.mean, f"{name}_episodes": float(standing.episodes)}
        if self.contest.difference:
            difference = self.contest.difference
            found |= {"difference": difference.mean, "difference_low": difference.low, "difference_high": difference.high}
        return {name: round(value, DECIMALS) for name, value in found.items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``dataclasses.asdict``."""
        standings = {name: Standing.from_json(value[name]) if value[name] else None for name in ("champion", "challenger")}
        return cls(
            at=value["at"],
            key=value["key"],
            tenure=value["tenure"],
            **standings,
            contest=Contest.from_json(value["contest"]),
            health=Health.from_json(value["health"]) if value["health"] else None,
            changes=Changes(**{name: tuple(lines) for name, lines in value["changes"].items()}),
        )


@dataclass(frozen=True)
class Handover:
    """A champion put in place by a person.

    Attributes:
        at: When, as ISO 8601.
        tenure: Number of the reign that began.
        how: ``by hand`` or ``rolled back``.
        name: Name of the policy.
        reason: What the person gave as reason; may be empty.
    """

    at: str
    tenure: int
    how: How
    name: str
    reason: str = ""


@dataclass(frozen=True)
class ChampionHistory:
    """All that is remembered of a dataset's champions, oldest first."""

    nights: tuple[Night, ...] = ()
    handovers: tuple[Handover, ...] = ()
