"""Winning subsets by group, drawn like the paper's Figure 2: a radar, or bars where there are too few axes for one."""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.projections.polar import PolarAxes

from mesa_pipeline import subsets
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Figure
from mesa_pipeline.reports.findings import OPTIMISM, GroupFinding
from mesa_pipeline.reports.group_intervals import draw_intervals
from mesa_pipeline.reports.looks import Look
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.theme import DOTS, GRID, INK, MARKER_EDGE, MUTED, canvas

MIN_RADAR_AXES = 3
MAX_GROUPS = 12
AXIS_NAME_CHARS = 18
RINGS = 4
RADAR_INCHES = 6.0


def group_figure(groups: Sequence[GroupFinding], name: str, noun: str, looks: Mapping[int, Look]) -> Figure | None:
    """The winners of each group, or ``None`` where no group has a score, or too many to draw.

    Args:
        groups: With their best subsets.
        name: Of the figure.
        noun: What a group is.
        looks: How subsets are drawn in this report; has every winner.
    """
    if not 0 < len(groups) <= MAX_GROUPS:
        return None
    draw = _radar if len(groups) >= MIN_RADAR_AXES else _bars
    return draw(groups, name, noun, looks)


def _describe(groups: Sequence[GroupFinding], noun: str) -> str:
    winners = "; ".join(
        f"{text.printable(group.name)}: {subsets.label(group.winner)} {text.score(group.winning_score, 1)}" for group in groups
    )
    return f"Best subset for each {noun}. {winners}."


def _said_of_intervals(groups: Sequence[GroupFinding]) -> str:
    level = text.confidence(groups[0].intervals[groups[0].winner].confidence)
    return (
        f"Lines are {level} bootstrap intervals over whole episodes, for a subset chosen beforehand: they do not cover the "
        f"choice. {OPTIMISM}"
    )


def _radar(groups: Sequence[GroupFinding], name: str, noun: str, looks: Mapping[int, Look]) -> Figure:
    description = _describe(groups, noun)
    below = 0.9 + 0.36 * len(groups)
    with canvas(7.6, RADAR_INCHES + below, name) as drawing:
        top, bottom = drawing.subfigures(2, 1, squeeze=False, height_ratios=(RADAR_INCHES, below))[:, 0]
        _draw_radar(top, groups, looks)
        draw_intervals(bottom, groups, looks)
        svg = to_svg(drawing, name, description)
    caption = (
        f"Above: mean score x100 on each {noun} axis. A star marks the best of the 31 subsets on its axis, named at the rim "
        "with its score; a coloured line follows that winner over all axes; grey dots are the other subsets. The rings need "
        "not start at zero. Below: to the left the winner (star) and all five (diamond), to the right their difference, paired "
        f"by question. {_said_of_intervals(groups)}"
    )
    return Figure(name, f"Winners by {noun}", svg, caption, description)


def _draw_radar(panel: SubFigure, groups: Sequence[GroupFinding], looks: Mapping[int, Look]) -> None:
    scores = 100 * np.array([group.scores for group in groups])
    angles = np.linspace(0, 2 * np.pi, len(groups), endpoint=False)
    axes = cast(PolarAxes, panel.add_subplot(projection="polar"))
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    _set_rings(axes, scores)
    for angle, row in zip(angles, scores, strict=True):
        axes.plot(np.full(row.size, angle), row, ".", color=DOTS, markersize=4, zorder=2)
    closed = np.append(angles, angles[0])
    for mask in sorted({group.winner for group in groups}, key=lambda mask: (subsets.size(mask), mask)):
        values, look = scores[:, mask - 1], looks[mask]
        line = np.append(values, values[0])
        axes.plot(closed, line, look.line, color=look.colour, linewidth=1.6, label=subsets.label(mask), zorder=3)
    for angle, group in zip(angles, groups, strict=True):
        best, colour = 100 * group.winning_score, looks[group.winner].colour
        axes.plot(angle, best, "*", color=colour, markersize=15, markeredgecolor=MARKER_EDGE, markeredgewidth=0.8, zorder=5)
    _label_axes(axes, angles, groups, looks)
    _legend(panel, axes)


def _set_rings(axes: PolarAxes, scores: np.ndarray) -> None:
    low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
    span = max(high - low, 1.0)
    bottom, top = max(0.0, low - 0.15 * span), high + 0.05 * span
    rings = np.linspace(bottom, top, RINGS + 1)[1:-1]  # the rim belongs to the axis names
    axes.set_ylim(bottom, top)
    axes.set_yticks(rings, [text.number(ring, 0 if span > 10 else 1) for ring in rings], fontsize=8)
    axes.set_rlabel_position(180 / len(scores))  # half way between the first two axes
    axes.spines["polar"].set_color(GRID)


def _label_axes(axes: Axes, angles: np.ndarray, groups: Sequence[GroupFinding], looks: Mapping[int, Look]) -> None:
    axes.set_xticks(angles, [""] * len(angles))
    for angle, group in zip(angles, groups, strict=True):
        side = np.sin(angle)
        align = "center" if abs(side) < 0.2 else "left" if side > 0 else "right"
        height = np.cos(angle)
        rim = axes.get_ylim()[1]
        name = text.printable(group.name, AXIS_NAME_CHARS)
        for line, (content, colour, weight) in enumerate(
            [
                (name, INK, "bold"),
                (_winner_label(group), looks[group.winner].colour, "bold"),
                (f"n = {group.questions}", MUTED, "normal"),
            ]
        ):
            axes.annotate(
                content,
                (angle, rim),
                xytext=(8 * side, 24 * height + 13 * (1 - line)),
                textcoords="offset points",
                horizontalalignment=align,
                verticalalignment="center",
                color=colour,
                fontweight=weight,
                fontsize=9,
                annotation_clip=False,
            )


def _winner_label(group: GroupFinding) -> str:
    tied = f" (+{group.tied} tied)" if group.tied else ""
    return f"{subsets.label(group.winner)}  {text.score(group.winning_score, 1)}{tied}"


def _legend(panel: SubFigure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    panel.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 6), title="winning subsets", title_fontsize=9
    )


def _bars(groups: Sequence[GroupFinding], name: str, noun: str, looks: Mapping[int, Look]) -> Figure:
    description = _describe(groups, noun)
    heights = [len(group.best) for group in groups]
    with canvas(7.2, 0.9 + 0.26 * sum(heights) + 0.45 * len(groups), name) as drawing:
        panels = drawing.subplots(len(groups), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
        for axes, group in zip(panels, groups, strict=True):
            _draw_bars(axes, group, looks)
        panels[-1].set_xlabel("mean score x100")
        svg = to_svg(drawing, name, description)
    caption = f"The best few of the 31 subsets and the full one for each {noun}, mean score x100. {_said_of_intervals(groups)}"
    return Figure(name, f"Winners by {noun}", svg, caption, description)


def _draw_bars(axes: Axes, group: GroupFinding, looks: Mapping[int, Look]) -> None:
    for row, mask in enumerate(group.best):
        found = group.intervals[mask]
        is_named = mask in (group.winner, subsets.FULL_SUBSET)
        axes.barh(row, 100 * found.mean, color=looks[mask].colour if is_named else DOTS, height=0.7)
        if found.clusters > 1:
            axes.plot((100 * found.low, 100 * found.high), (row, row), color=INK, linewidth=1.2)
        end = max(100 * found.mean, 100 * found.high)
        shown = text.score(found.mean, 1)
        axes.annotate(shown, (end, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(np.arange(len(group.best)), [subsets.label(mask) for mask in group.best])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_title(f"{text.printable(group.name, 60)} (n = {group.questions})", loc="left", fontsize=10)
    axes.margins(x=0.12)
