"""Colours and type of the figures.

The palette is Okabe and Ito's for the structures and Tol's "muted" for subsets, darkened where names are in it: both keep
apart under the common colour vision deficiencies. Ink, muted text, grid lines and marker edges are replaced by the page's own
variables where a figure stands inside a page.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRUCTURE_COLOURS = {"S": "#0072b2", "T": "#e69f00", "G": "#009e73", "V": "#cc79a7", "R": "#d55e00"}
SUBSET_COLOURS = ("#94801e", "#cc6677", "#3a8fb7", "#117733", "#aa4499", "#2f8f80", "#882255")
"""Those least like a structure's colour first; the last is near to that of the frozen policy."""
LINE_STYLES = ("-", "--", "-.", ":")
POLICY_COLOUR = "#c2185b"
ALL_COLOUR = "#4455aa"
INK, MUTED, GRID, DOTS = "#1f2430", "#667085", "#e4e7ec", "#b4bac6"
MARKER_EDGE = "#ffffff"
PAGE_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    DOTS: "var(--dots)",
    MARKER_EDGE: "var(--page)",
}
FONT_FAMILY = "DejaVu Sans"

_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "figure.facecolor": "none",
    "font.family": FONT_FAMILY,
    "font.size": 10,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
}


@contextmanager
def canvas(width: float, height: float, name: str) -> Iterator["Figure"]:
    """A figure drawn in the house style whatever the user's matplotlibrc says; ``width`` and ``height`` in inches.

    ``name`` salts the ids inside the SVG, so that several figures can stand in one page.
    """
    import matplotlib  # takes a second, which nobody who draws nothing should wait for
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", _STYLE]), matplotlib.rc_context({"svg.hashsalt": name}):
        yield Figure(figsize=(width, height), layout="constrained")
