"""How a system or a subset is drawn: the same in every figure of a report."""

from collections.abc import Iterable
from dataclasses import dataclass

from mesa_pipeline import subsets
from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.reports.findings import GroupFinding
from mesa_pipeline.reports.theme import ALL_COLOUR, LINE_STYLES, POLICY_COLOUR, STRUCTURE_COLOURS, SUBSET_COLOURS

ALL = "all"
HATCHES = ("", "////")
SYSTEM_COLOURS = SUBSET_COLOURS[:-1]
SINGLE_LINE = ":"
"""A structure's colour may be near to that of a subset beside it."""


@dataclass(frozen=True)
class Look:
    """A colour, and what tells apart those that share it: the style of a line and the hatch of a bar."""

    colour: str
    line: str = "-"
    hatch: str = ""


def winner_looks(groups: Iterable[GroupFinding]) -> dict[int, Look]:
    """Looks by mask of the winners of all groups of a report, to be drawn from in each of its figures."""
    looks = {subsets.encode([code]): Look(colour, line=SINGLE_LINE) for code, colour in STRUCTURE_COLOURS.items()}
    looks[subsets.FULL_SUBSET] = Look(ALL_COLOUR)
    others = {group.winner for group in groups} - looks.keys()
    for place, mask in enumerate(sorted(others, key=lambda mask: (subsets.size(mask), mask))):
        turn, colour = divmod(place, len(SUBSET_COLOURS))
        looks[mask] = Look(SUBSET_COLOURS[colour], line=LINE_STYLES[turn % len(LINE_STYLES)])
    return looks


def system_look(code: str) -> Look:
    """Look of a baseline, of reading all five structures, or of MESA; it does not depend on which others were run."""
    own = {FROZEN_ROW: POLICY_COLOUR, ALL: ALL_COLOUR}
    if code in own:
        return Look(own[code])
    turn, colour = divmod(list(BASELINES).index(code), len(SYSTEM_COLOURS))
    return Look(SYSTEM_COLOURS[colour], hatch=HATCHES[turn % len(HATCHES)])
