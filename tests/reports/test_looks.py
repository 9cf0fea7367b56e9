import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.reports.findings import GroupFinding
from mesa_pipeline.reports.looks import ALL, system_look, winner_looks
from mesa_pipeline.reports.theme import ALL_COLOUR, POLICY_COLOUR, STRUCTURE_COLOURS


def group(mask: int) -> GroupFinding:
    return GroupFinding("g", 1, 1, np.zeros(31), (mask,), {}, 0, None)


def test_every_winner_has_a_look_of_its_own() -> None:
    looks = winner_looks([group(mask) for mask in subsets.ALL_SUBSETS])
    assert len({(look.colour, look.line) for look in looks.values()}) == 31


def test_single_structures_and_all_five_are_drawn_as_everywhere() -> None:
    looks = winner_looks([])
    assert {code: looks[subsets.encode([code])].colour for code in STRUCTURE_COLOURS} == STRUCTURE_COLOURS
    assert looks[subsets.FULL_SUBSET].colour == ALL_COLOUR


def test_systems_are_told_apart() -> None:
    looks = [system_look(code) for code in (*BASELINES, ALL, FROZEN_ROW)]
    assert len(set(looks)) == len(looks)
    assert looks[-1].colour == POLICY_COLOUR
