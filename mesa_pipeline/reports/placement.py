"""Where labels go in a crowded plot."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from mesa_pipeline.reports.theme import MUTED

_DIRECTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1))
_REACHES = (6.0, 13.0, 22.0, 34.0, 48.0)
_MARKER_RADIUS = 6.0
_LINE_RADIUS = 1.5
_LINE_STRIDE = 4.0
Point = tuple[float, float]


@dataclass(frozen=True)
class Label:
    """A text that belongs to a point, in data coordinates."""

    x: float
    y: float
    text: str
    colour: str
    bold: bool = False


class _Spot(NamedTuple):
    """An offset from the point in pixels, the box the text would fill there, and whether it is far enough to need a line."""

    dx: float
    dy: float
    box: Bbox
    far: bool


def place_labels(
    drawing: Figure, axes: Axes, labels: Sequence[Label], points: Sequence[Point], line: Sequence[Point] = ()
) -> None:
    """Write each label beside its point where it covers no earlier label, no point and no part of the line; far ones get a
    thin line of their own.

    Call last, when the limits of the axes are final. Labels come in order of importance: where there is no free place left a
    label is left out rather than printed over another.
    """
    canvas = FigureCanvasAgg(drawing)
    canvas.draw()
    renderer = canvas.get_renderer()
    drawing.set_layout_engine("none")
    frame = axes.get_window_extent(renderer)
    taken = [_box(x, y, _MARKER_RADIUS, _MARKER_RADIUS) for x, y in _pixels(axes, points)]
    taken += [_box(x, y, _LINE_RADIUS, _LINE_RADIUS) for x, y in _along(axes, line)]
    pixels = drawing.dpi / 72
    for label in labels:
        note = _annotate(axes, label)
        size = note.get_window_extent(renderer)
        (origin,) = _pixels(axes, [(label.x, label.y)])
        spots = _spots(origin, size.width / 2 + 1, size.height / 2 + 1, pixels)
        spot = next((spot for spot in spots if _is_free(spot.box, frame, taken)), None)
        if spot is None:
            note.remove()
            continue
        note.set_position((spot.dx / pixels, spot.dy / pixels))
        if note.arrow_patch is not None:
            note.arrow_patch.set_visible(spot.far)
        taken.append(spot.box)


def _pixels(axes: Axes, points: Sequence[Point]) -> list[Point]:
    return [(float(x), float(y)) for x, y in map(axes.transData.transform, points)]


def _along(axes: Axes, line: Sequence[Point]) -> Iterator[Point]:
    """Pixels along a line given by its corners in data coordinates."""
    for (x0, y0), (x1, y1) in pairwise(_pixels(axes, line)):
        count = int(np.hypot(x1 - x0, y1 - y0) / _LINE_STRIDE) + 1
        yield from zip(np.linspace(x0, x1, count), np.linspace(y0, y1, count), strict=True)


def _annotate(axes: Axes, label: Label) -> Annotation:
    return axes.annotate(
        label.text,
        (label.x, label.y),
        xytext=(0, 0),
        textcoords="offset points",
        color=label.colour,
        fontsize=9,
        fontweight="bold" if label.bold else "normal",
        horizontalalignment="center",
        verticalalignment="center",
        arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3},
    )


def _spots(origin: Point, half_width: float, half_height: float, pixels: float) -> Iterator[_Spot]:
    for reach in _REACHES:
        for x, y in _DIRECTIONS:
            dx = x * (half_width + reach * pixels * (0.5 if y else 1.0))
            dy = y * (half_height + reach * pixels * 0.8)
            yield _Spot(dx, dy, _box(origin[0] + dx, origin[1] + dy, half_width, half_height), reach > _REACHES[0])


def _is_free(box: Bbox, frame: Bbox, taken: Sequence[Bbox]) -> bool:
    inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
    return inside and not any(box.overlaps(other) for other in taken)


def _box(x: float, y: float, half_width: float, half_height: float) -> Bbox:
    return Bbox.from_extents(x - half_width, y - half_height, x + half_width, y + half_height)
