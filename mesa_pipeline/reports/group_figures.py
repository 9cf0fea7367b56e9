"""Winning subsets by group, drawn like the paper's Figure 2: a radar, or bars where there are too few axes for one."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.projections.polar import PolarAxes

from mesa_pipeline import subsets
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Figure
from mesa_pipeline.reports.findings import OPTIMISM, GroupFinding
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.theme import DOTS, GRID, INK, LINE_STYLES, MARKER_EDGE, MUTED, SUBSET_COLOURS, canvas

MIN_RADAR_AXES = 3
MAX_GROUPS = 12
AXIS_NAME_CHARS = 18
BAR_SUBSETS = 6
RINGS = 4


def group_figure(groups: Sequence[GroupFinding], name: str, noun: str) -> Figure | None:
    """The winners of each group, or ``None`` where no group has a score, or too many to draw; ``noun`` says what a group is."""
    if not 0 < len(groups) <= MAX_GROUPS:
        return None
    return _radar(groups, name, noun) if len(groups) >= MIN_RADAR_AXES else _bars(groups, name, noun)


def _describe(groups: Sequence[GroupFinding], noun: str) -> str:
    winners = "; ".join(
        f"{text.printable(group.name)}: {subsets.label(group.winner)} {text.score(group.winning_score, 1)}" for group in groups
    )
    return f"Best subset for each {noun}. {winners}."


def _radar(groups: Sequence[GroupFinding], name: str, noun: str) -> Figure:
    description = _describe(groups, noun)
    scores = 100 * np.array([group.scores for group in groups])
    winners = sorted({group.winner for group in groups}, key=lambda mask: (subsets.size(mask), mask))
    colours = {mask: SUBSET_COLOURS[k % len(SUBSET_COLOURS)] for k, mask in enumerate(winners)}
    angles = np.linspace(0, 2 * np.pi, len(groups), endpoint=False)
    with canvas(7.2, 6.0, name) as drawing:
        axes = cast(PolarAxes, drawing.add_subplot(projection="polar"))
        axes.set_theta_zero_location("N")
        axes.set_theta_direction(-1)
        _set_rings(axes, scores)
        for angle, row in zip(angles, scores, strict=True):
            axes.plot(np.full(row.size, angle), row, ".", color=DOTS, markersize=4, zorder=2)
        closed = np.append(angles, angles[0])
        for k, mask in enumerate(winners):
            values = scores[:, mask - 1]
            axes.plot(
                closed,
                np.append(values, values[0]),
                color=colours[mask],
                linestyle=LINE_STYLES[k // len(SUBSET_COLOURS) % len(LINE_STYLES)],
                linewidth=1.6,
                label=subsets.label(mask),
                zorder=3,
            )
        for angle, group in zip(angles, groups, strict=True):
            colour = colours[group.winner]
            best = 100 * group.winning_score
            axes.plot(angle, best, "*", color=colour, markersize=15, markeredgecolor=MARKER_EDGE, markeredgewidth=0.8, zorder=5)
        _label_axes(axes, angles, groups, colours)
        _legend(drawing, axes)
        svg = to_svg(drawing, name, description)
    caption = (
        f"Mean score x100 on each {noun} axis. A star marks the best of the 31 subsets on its axis, named at the rim with its "
        "score; a coloured line follows that winner over all axes; grey dots are the other subsets. The rings "
        "need not start at "
        f"zero. {OPTIMISM}"
    )
    return Figure(name, f"Winners by {noun}", svg, caption, description)


def _set_rings(axes: PolarAxes, scores: np.ndarray) -> None:
    low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
    span = max(high - low, 1.0)
    bottom, top = max(0.0, low - 0.15 * span), high + 0.05 * span
    rings = np.linspace(bottom, top, RINGS + 1)[1:-1]  # the rim belongs to the axis names
    axes.set_ylim(bottom, top)
    axes.set_yticks(rings, [text.number(ring, 0 if span > 10 else 1) for ring in rings], fontsize=8)
    axes.set_rlabel_position(180 / len(scores))  # half way between the first two axes
    axes.spines["polar"].set_color(GRID)


def _label_axes(axes: Axes, angles: np.ndarray, groups: Sequence[GroupFinding], colours: dict[int, str]) -> None:
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
                (_winner_label(group), colours[group.winner], "bold"),
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


def _legend(drawing: Drawing, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    drawing.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 6), title="winning subsets", title_fontsize=9
    )


def _bars(groups: Sequence[GroupFinding], name: str, noun: str) -> Figure:
    description = _describe(groups, noun)
    best = {group.name: _best_subsets(group) for group in groups}
    heights = [len(best[group.name]) for group in groups]
    with canvas(7.2, 0.9 + 0.26 * sum(heights) + 0.45 * len(groups), name) as drawing:
        panels = drawing.subplots(len(groups), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
        for axes, group in zip(panels, groups, strict=True):
            _draw_bars(axes, group, best[group.name])
        panels[-1].set_xlabel("mean score x100")
        svg = to_svg(drawing, name, description)
    caption = f"The {BAR_SUBSETS} best of the 31 subsets and the full one for each {noun}, mean score x100. {OPTIMISM}"
    return Figure(name, f"Winners by {noun}", svg, caption, description)


def _best_subsets(group: GroupFinding) -> list[int]:
    scored = [mask for mask in subsets.ALL_SUBSETS if not np.isnan(group.scores[mask - 1]) and mask != group.winner]
    ranked = [group.winner, *sorted(scored, key=lambda mask: (-group.scores[mask - 1], mask))]
    shown = ranked[:BAR_SUBSETS]
    full_is_missing = subsets.FULL_SUBSET in ranked and subsets.FULL_SUBSET not in shown
    return [*shown, subsets.FULL_SUBSET] if full_is_missing else shown


def _draw_bars(axes: Axes, group: GroupFinding, masks: Sequence[int]) -> None:
    values = [100 * group.scores[mask - 1] for mask in masks]
    colours = [SUBSET_COLOURS[0] if mask == group.winner else DOTS for mask in masks]
    rows = np.arange(len(masks))
    axes.barh(rows, values, color=colours, height=0.7)
    axes.set_yticks(rows, [subsets.label(mask) for mask in masks])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_title(f"{text.printable(group.name, 60)} (n = {group.questions})", loc="left", fontsize=10)
    for row, value in zip(rows, values, strict=True):
        axes.annotate(text.number(value, 1), (value, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.margins(x=0.12)
