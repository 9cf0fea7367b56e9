"""Which direction each candidate follows: the arithmetic of paper, Eq. 9, on counts and means.

The paper fixes the index and three roles, not which arm each role takes. Here exploit takes the visited arm of highest value,
explore the arm of highest index among the others, repair the arm of the policy it mends; see docs/decisions/0094.
"""

import math
from collections.abc import Mapping, Sequence

from mesa_pipeline.config import UcbSettings
from mesa_pipeline.search.records import ArmStatistics


def arm_statistics(
    objectives: Mapping[str, Sequence[float]],
    frontier: float,
    settings: UcbSettings,
    invalid: Mapping[str, int],
    duplicates: Mapping[str, int],
) -> tuple[ArmStatistics, ...]:
    """Value and exploration bonus of every arm, in the order given.

    Args:
        objectives: Validation objective of each candidate counted as a pull, by arm; every arm has an entry.
        frontier: Highest validation objective so far, the value of an arm without pulls.
        settings: beta, scale of the bonus, and whether an arm is worth its mean or its best.
        invalid: Invalid candidates by arm; an arm left out has none.
        duplicates: Candidates that repeated an earlier one by arm; an arm left out has none.
    """
    total = sum(len(found) for found in objectives.values())
    values = {arm: _value(found, frontier, settings) for arm, found in objectives.items()}
    scale = _scale(list(values.values()), settings)
    return tuple(
        ArmStatistics(
            direction=arm,
            pulls=len(found),
            value=values[arm],
            bonus=scale * settings.beta * math.sqrt(math.log(total + 2) / (len(found) + 1)),
            invalid=invalid.get(arm, 0),
            duplicates=duplicates.get(arm, 0),
        )
        for arm, found in objectives.items()
    )


def exploited_arm(arms: Sequence[ArmStatistics]) -> str:
    """The visited arm of highest value; before any visit, the one explored. Ties go to fewer pulls, then to the first."""
    visited = [arm for arm in arms if arm.pulls]
    return min(visited, key=lambda arm: (-arm.value, arm.pulls)).direction if visited else explored_arm(arms)


def explored_arm(arms: Sequence[ArmStatistics], exploited: str | None = None, backed_off: Sequence[str] = ()) -> str:
    """The arm of highest index that is neither exploited nor backed off. Ties go to fewer pulls, then to the first.

    Where there is no such arm it is the exploited one, and where every arm is backed off the highest of all.
    """
    others = [arm for arm in arms if arm.direction not in backed_off]
    open_arms = [arm for arm in others if arm.direction != exploited] or others or list(arms)
    return min(open_arms, key=lambda arm: (-arm.ucb, arm.pulls)).direction


def bonus_to_spread(arms: Sequence[ArmStatistics]) -> float | None:
    """Mean bonus as a multiple of the spread of the visited arms' values: far above 1 the schedule is round-robin.

    ``None`` while fewer than two arms differ.
    """
    values = [arm.value for arm in arms if arm.pulls]
    spread = max(values) - min(values) if values else 0.0
    return sum(arm.bonus for arm in arms) / len(arms) / spread if spread > 0 else None


def _value(objectives: Sequence[float], frontier: float, settings: UcbSettings) -> float:
    if not objectives:
        return frontier
    return max(objectives) if settings.reward == "max" else math.fsum(objectives) / len(objectives)


def _scale(values: Sequence[float], settings: UcbSettings) -> float:
    """1, or the spread of the values where the bonus is to follow it (Fialho et al. 2010); 1 while there is no spread."""
    spread = max(values) - min(values)
    return spread if settings.scale == "range" and spread > 0 else 1.0
