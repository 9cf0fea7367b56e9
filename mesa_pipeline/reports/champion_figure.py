"""The drawing of a champion's history: what it was worth each night."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from mesa_pipeline.evaluation.nights import Night
from mesa_pipeline.evaluation.showing import Standing
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Figure
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.theme import ALL_COLOUR, INK, MARKER_EDGE, MUTED, POLICY_COLOUR, canvas

SHOWN_NIGHTS = 60
DATE_CHARS = len("2030-01-01")
MAX_TICKS = 8


@dataclass(frozen=True)
class _Point:
    """One night; ``is_new``: another policy reigns from here on."""

    place: int
    night: Night
    standing: Standing
    is_new: bool


def champion_figure(nights: Sequence[Night]) -> Figure | None:
    """Score and difference to all five of whoever reigns after each night; ``None`` where nobody did."""
    points = _points(nights)
    if not points:
        return None
    level = text.confidence(points[-1].standing.score.confidence)
    description = "The champion's score x100 by night: " + "; ".join(
        f"{point.night.at[:DATE_CHARS]} {text.score(point.standing.score.mean, 1)}" for point in points[-MAX_TICKS:]
    )
    with canvas(8.4, 4.8, "champion") as drawing:
        upper, lower = drawing.subplots(2, 1, sharex=True)
        upper.plot(
            [point.place for point in points],
            [100 * point.standing.all_score for point in points],
            "D",
            color=ALL_COLOUR,
            markersize=5,
            label="all five structures",
        )
        _draw(upper, points, [point.standing.score for point in points])
        lower.axhline(0, color=MUTED, linewidth=1)
        _draw(lower, points, [point.standing.versus_all for point in points])
        upper.set_ylabel("score x100")
        lower.set_ylabel("worth x100, less all five")
        dated = points[:: -math.ceil(len(points) / MAX_TICKS)]  # from the last night back
        lower.set_xticks([point.place for point in dated], [point.night.at[:DATE_CHARS] for point in dated])
        upper.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=9)
        svg = to_svg(drawing, "champion", description)
    caption = (
        f"On the episodes held out from the champion, which grow with the data, with the {level} episode-clustered interval. "
        "Worth is score less the price of the tokens. A star: another policy reigns from that night on, and its figures are "
        "those that it was crowned with. A ring: it got significantly worse."
    )
    return Figure("champion", "The champion by night", svg, caption, description)


def _points(nights: Sequence[Night]) -> list[_Point]:
    found: list[_Point] = []
    for place, night in enumerate(nights[-SHOWN_NIGHTS:]):
        standing = night.challenger if night.contest.is_crowned else night.champion
        if standing is not None and night.tenure is not None:
            before = found[-1].night.tenure if found else None
            found.append(_Point(place, night, standing, night.contest.is_crowned or before not in (None, night.tenure)))
    return found


def _draw(axes: Axes, points: Sequence[_Point], values: Sequence[Interval]) -> None:
    for point, value in zip(points, values, strict=True):
        axes.plot((point.place, point.place), (100 * value.low, 100 * value.high), color=POLICY_COLOUR, linewidth=1.4)
    for is_new, marker, size, label in ((False, "o", 6, "champion"), (True, "*", 15, "a new champion")):
        drawn = [(point.place, 100 * value.mean) for point, value in zip(points, values, strict=True) if point.is_new == is_new]
        if drawn:
            axes.plot(
                *zip(*drawn, strict=True),
                marker,
                color=POLICY_COLOUR,
                markersize=size,
                markeredgecolor=MARKER_EDGE,
                label=label,
                zorder=5,
            )
    worse = [(p.place, 100 * value.mean) for p, value in zip(points, values, strict=True) if p.night.worse]
    if worse:
        axes.plot(*zip(*worse, strict=True), "o", color=INK, markerfacecolor="none", markersize=13, label="got worse", zorder=6)
