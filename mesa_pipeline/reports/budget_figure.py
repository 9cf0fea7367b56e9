"""Score against a limit on evidence tokens: the frozen policy beside other ways to fill the same budget."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from mesa_pipeline.evaluation.budget import FIXED_CURVE, MOST_CURVE, POLICY_CURVE, SINGLE_CURVE, BudgetCurve
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Figure
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.theme import ALL_COLOUR, INK, MUTED, POLICY_COLOUR, STRUCTURE_COLOURS, canvas

BAND_OPACITY = 0.15
DODGE = 0.14
_LOOKS = {
    POLICY_CURVE: (POLICY_COLOUR, "*", "-"),
    FIXED_CURVE: (INK, "o", "--"),
    MOST_CURVE: (ALL_COLOUR, "D", "-."),
    SINGLE_CURVE: (STRUCTURE_COLOURS["T"], "s", ":"),
}


def budget_figure(curves: Sequence[BudgetCurve]) -> Figure:
    """Draw curves that share their budgets, the frozen policy's among them."""
    policy = next(curve for curve in curves if curve.name == POLICY_CURVE)
    level = text.confidence(policy.points[0].score.confidence)
    description = "Score within a token budget. " + "; ".join(
        f"{text.number(point.budget)} tokens: {text.score(point.score.mean, 1)}, "
        f"{text.difference(point.versus_fixed.mean)} to the {FIXED_CURVE} that fits"
        for point in policy.points
    )
    with canvas(7.6, 6.4, "budget") as drawing:
        top, bottom = drawing.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for curve in curves:
            _draw_scores(top, curve)
        compared = [curve for curve in curves if curve.name != FIXED_CURVE]
        for place, curve in enumerate(compared):
            _draw_differences(bottom, curve, DODGE * (place - (len(compared) - 1) / 2))
        bottom.axhline(0, color=MUTED, linewidth=1)
        bottom.set_xticks(
            range(len(policy.points)),
            [f"{text.number(point.budget)}\n{text.percent(point.fitting)} fit" for point in policy.points],
        )
        top.set_ylabel("mean score x100")
        top.legend(loc="lower right", fontsize=9)
        bottom.set_ylabel(f"difference to the\n{FIXED_CURVE}")
        bottom.set_xlabel("most evidence tokens allowed, and the questions for which anything fits")
        bottom.yaxis.set_major_locator(MaxNLocator(5))
        svg = to_svg(drawing, "budget", description)
    caption = (
        f"Above: mean test score x100 when no more than so many evidence tokens may be read; the band is the {level} interval "
        "of the frozen policy. The others read, of what fits, the subset or the single structure that was best on the "
        f"training questions, or the most structures. Below: paired difference to the {FIXED_CURVE}, with its {level} "
        "interval. Intervals are bootstrapped over episodes, the test questions of all split seeds together. Where no subset "
        "fits, nothing is read and the question counts as score 0."
    )
    return Figure("budget", "Score against evidence budget", svg, caption, description)


def _draw_scores(axes: Axes, curve: BudgetCurve) -> None:
    colour, marker, line = _LOOKS[curve.name]
    places = range(len(curve.points))
    size, width, order = (13, 2.0, 4) if curve.name == POLICY_CURVE else (5, 1.2, 3)
    scores = [100 * point.score.mean for point in curve.points]
    axes.plot(places, scores, marker + line, color=colour, markersize=size, linewidth=width, label=curve.name, zorder=order)
    if curve.name == POLICY_CURVE:
        lows = [100 * point.score.low for point in curve.points]
        highs = [100 * point.score.high for point in curve.points]
        axes.fill_between(places, lows, highs, color=colour, alpha=BAND_OPACITY, linewidth=0)


def _draw_differences(axes: Axes, curve: BudgetCurve, shift: float) -> None:
    colour, marker, _ = _LOOKS[curve.name]
    for place, point in enumerate(curve.points):
        found = point.versus_fixed
        axes.plot((place + shift, place + shift), (100 * found.low, 100 * found.high), color=colour, linewidth=1.6)
        axes.plot(place + shift, 100 * found.mean, marker, color=colour, markersize=9 if curve.name == POLICY_CURVE else 4)
