"""Winning subsets with their intervals, a line a group: what a radar cannot carry."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure

from mesa_pipeline import subsets
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports import text
from mesa_pipeline.reports.findings import GroupFinding
from mesa_pipeline.reports.looks import Look
from mesa_pipeline.reports.theme import INK, MUTED

NAME_CHARS = 24
FULL_OFFSET = 0.26
"""How far below its winner a group's full subset stands, in lines."""


def draw_intervals(panel: SubFigure, groups: Sequence[GroupFinding], looks: Mapping[int, Look]) -> None:
    """To the left each group's winner and its full subset, to the right their paired difference, all with intervals."""
    left, right = panel.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for row, group in enumerate(groups):
        look = looks[group.winner]
        if subsets.FULL_SUBSET in group.intervals and group.winner != subsets.FULL_SUBSET:
            full = group.intervals[subsets.FULL_SUBSET]
            draw_interval(left, row + FULL_OFFSET, full, looks[subsets.FULL_SUBSET].colour, "D")
        draw_interval(left, row, group.intervals[group.winner], look.colour, "*")
        if group.margin is not None:
            draw_interval(right, row, group.margin, look.colour, "*")
    names = [f"{text.printable(group.name, NAME_CHARS)}: {subsets.label(group.winner)}" for group in groups]
    left.set_yticks(np.arange(len(groups)), names, color=INK)
    left.set_ylim(len(groups) - 0.3, -0.5)
    left.set_xlabel("mean score x100")
    right.set_xlabel("winner minus all five")
    right.axvline(0, color=MUTED, linewidth=1)
    for axes in (left, right):
        axes.margins(x=0.08)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)


def draw_interval(axes: Axes, row: float, found: Interval, colour: str, marker: str) -> None:
    """A mean with its interval, times a hundred; from a single episode there is none to draw."""
    if found.clusters > 1:
        axes.plot((100 * found.low, 100 * found.high), (row, row), color=colour, linewidth=1.6)
    axes.plot(100 * found.mean, row, marker, color=colour, markersize=11 if marker == "*" else 5)
