"""Score against evidence tokens: the 31 subsets, their Pareto front, and where the frozen policy stands."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from mesa_pipeline import subsets
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Figure
from mesa_pipeline.reports.findings import SubsetFinding
from mesa_pipeline.reports.placement import Label, Point, place_labels
from mesa_pipeline.reports.standings import Standing
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.theme import ALL_COLOUR, DOTS, INK, MARKER_EDGE, POLICY_COLOUR, STRUCTURE_COLOURS, canvas

LOG_SCALE_RATIO = 8.0


def cost_figure(findings: Sequence[SubsetFinding], policy: Standing | None, population: str) -> Figure | None:
    """Draw the subsets that have a score; ``None`` where none has. ``population`` says over which questions."""
    drawn = [finding for finding in findings if np.isfinite(finding.score) and np.isfinite(finding.tokens)]
    if not drawn:
        return None
    front = sorted((finding for finding in drawn if finding.on_front), key=lambda finding: finding.tokens)
    description = _describe(front)
    points = [_point(finding) for finding in drawn]
    with canvas(7.6, 5.2, "cost") as drawing:
        axes = drawing.subplots()
        axes.plot(*zip(*points, strict=True), "o", color=DOTS, markersize=5, label="subset")
        corners = _corners([_point(finding) for finding in front])
        axes.plot(*zip(*corners, strict=True), color=INK, linewidth=1, label="Pareto front")
        labels = _draw_marks(axes, drawn)
        if policy is not None and np.isfinite(policy.score.mean):
            points.append((policy.tokens.mean, 100 * policy.score.mean))
            labels.insert(0, _draw_policy(axes, points[-1]))
        _set_scales(axes, [tokens for tokens, _ in points])
        place_labels(drawing, axes, labels, points, corners)
        svg = to_svg(drawing, "cost", description)
    caption = (
        f"Mean score x100 against mean evidence tokens, over {population}. Up and to the left is better. No "
        "subset on the front "
        "is beaten by another that scores at least as well for at most as many tokens. Squares are the single structures."
    )
    return Figure("cost", "Accuracy against evidence tokens", svg, caption, description)


def _describe(front: Sequence[SubsetFinding]) -> str:
    steps = [
        f"{subsets.label(finding.mask)} {text.score(finding.score, 1)} for {text.number(finding.tokens)} tokens"
        for finding in front
    ]
    return "Score against evidence tokens. Pareto front: " + "; ".join(steps)


def _point(finding: SubsetFinding) -> Point:
    return finding.tokens, 100 * finding.score


def _corners(front: Sequence[Point]) -> list[Point]:
    """The staircase under the front: what is reached with no more than so many tokens."""
    between = [corner for (_, y0), (x1, y1) in pairwise(front) for corner in ((x1, y0), (x1, y1))]
    return [front[0], *between]


def _draw_policy(axes: Axes, point: Point) -> Label:
    axes.plot(*point, "*", color=POLICY_COLOUR, markersize=17, markeredgecolor=MARKER_EDGE, label="frozen policy", zorder=6)
    return Label(*point, "frozen policy", POLICY_COLOUR, bold=True)


def _draw_marks(axes: Axes, drawn: Sequence[SubsetFinding]) -> list[Label]:
    """Mark what deserves a name; the labels come in order of importance."""
    full, singles, front = [], [], []
    for finding in sorted(drawn, key=lambda finding: finding.tokens):
        point = _point(finding)
        if finding.mask == subsets.FULL_SUBSET:
            axes.plot(*point, "D", color=ALL_COLOUR, markersize=9, label="all five", zorder=5)
            full.append(Label(*point, "all five", ALL_COLOUR, bold=True))
        elif finding.mask in subsets.SINGLE_SUBSETS:
            (code,) = subsets.decode(finding.mask)
            axes.plot(*point, "s", color=STRUCTURE_COLOURS[code], markersize=9, zorder=4)
            singles.append(Label(*point, f"{code} {subsets.STRUCTURE_NAMES[code]}", INK))
        elif finding.on_front:
            axes.plot(*point, "o", color=INK, markersize=6, zorder=4)
            front.append(Label(*point, subsets.label(finding.mask), INK))
    return full + singles + front


def _set_scales(axes: Axes, tokens: Sequence[float]) -> None:
    if min(tokens) > 0 and max(tokens) / min(tokens) > LOG_SCALE_RATIO:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _position: text.number(value))
    axes.set_xlabel("evidence tokens of a question")
    axes.set_ylabel("mean score x100")
    axes.margins(0.08, 0.12)
    axes.legend(loc="lower right", fontsize=9)
