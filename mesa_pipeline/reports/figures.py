"""The report's drawings of policies, their choices, and build time. Scores are shown times a hundred."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from mesa_pipeline import subsets
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Figure
from mesa_pipeline.reports.standings import Standing
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.theme import ALL_COLOUR, INK, MUTED, POLICY_COLOUR, STRUCTURE_COLOURS, canvas

MAX_CHOICES = 14
SHORTEST_SECONDS = 1e-5
POLICY_NAME_CHARS = 40


def policies_figure(found: Sequence[Standing]) -> Figure | None:
    """Every policy's score, and its difference to reading all five with the interval."""
    drawn = [standing for standing in found if np.isfinite(standing.score.mean)]
    if not drawn:
        return None
    level = text.confidence(drawn[0].confidence)
    description = "Scores of the policies: " + "; ".join(
        f"{text.printable(standing.name, POLICY_NAME_CHARS)} {text.score(standing.score.mean, 1)}" for standing in drawn
    )
    with canvas(8.4, 1.1 + 0.29 * len(drawn), "policies") as drawing:
        left, right = drawing.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        for row, standing in enumerate(drawn):
            _draw_standing(left, right, row, standing)
        left.set_yticks(range(len(drawn)), [_standing_label(standing) for standing in drawn])
        for label, standing in zip(left.get_yticklabels(), drawn, strict=True):
            label.set_color(INK)
            label.set_fontweight("bold" if standing.kind in ("frozen", "all") else "normal")
        left.invert_yaxis()
        left.margins(x=0.08)
        left.set_xlabel("mean score x100")
        right.axvline(0, color=MUTED, linewidth=1)
        right.set_xlabel("difference to all five")
        for axes in (left, right):
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
        svg = to_svg(drawing, "policies", description)
    several = any(standing.seeds > 1 for standing in drawn)
    line = ", the line is one sample standard deviation over split seeds" if several else ""
    caption = (
        f"Left: mean test score x100{line}. Right: paired difference to reading all five structures with its {level} "
        f"episode-clustered bootstrap interval{', averaged over split seeds' if several else ''}."
    )
    return Figure("policies", "Policies on held-out episodes", svg, caption, description)


def _draw_standing(left: Axes, right: Axes, row: int, standing: Standing) -> None:
    colour = _standing_colour(standing)
    marker = {"frozen": "*", "all": "D", "oracle": "^"}.get(standing.kind, "o")
    size = 13 if standing.kind == "frozen" else 7
    if standing.score.std is not None:
        ends = 100 * (standing.score.mean - standing.score.std), 100 * (standing.score.mean + standing.score.std)
        left.plot(ends, (row, row), color=colour, linewidth=1.6)
    left.plot(100 * standing.score.mean, row, marker, color=colour, markersize=size)
    if standing.kind != "all" and np.isfinite(standing.low) and np.isfinite(standing.high):
        right.plot((100 * standing.low, 100 * standing.high), (row, row), color=colour, linewidth=1.6)
        right.plot(100 * standing.difference.mean, row, marker, color=colour, markersize=size)


def _standing_label(standing: Standing) -> str:
    name = text.printable(standing.name, POLICY_NAME_CHARS)
    return f"{subsets.STRUCTURE_NAMES[name]} {name}" if standing.kind == "single" and name in subsets.STRUCTURE_NAMES else name


def _standing_colour(standing: Standing) -> str:
    if standing.kind == "single" and standing.name in STRUCTURE_COLOURS:
        return STRUCTURE_COLOURS[standing.name]
    return {"frozen": POLICY_COLOUR, "all": ALL_COLOUR}.get(standing.kind, MUTED)


def build_figure(build_seconds: Mapping[str, Sequence[float]]) -> Figure | None:
    """Build time of an episode's memory, for each structure."""
    codes = [code for code in subsets.STRUCTURE_CODES if build_seconds.get(code)]
    if not codes:
        return None
    values = [np.maximum(np.array(build_seconds[code], dtype=float), SHORTEST_SECONDS) for code in codes]
    description = "Median build seconds: " + "; ".join(
        f"{subsets.STRUCTURE_NAMES[code]} {text.seconds(float(np.median(found)))}"
        for code, found in zip(codes, values, strict=True)
    )
    with canvas(7.2, 0.9 + 0.42 * len(codes), "build") as drawing:
        axes = drawing.subplots()
        boxes = axes.boxplot(values, orientation="horizontal", whis=(0, 100), widths=0.55, patch_artist=True)
        for code, box in zip(codes, boxes["boxes"], strict=True):
            box.set(facecolor=STRUCTURE_COLOURS[code], edgecolor=INK, linewidth=0.8)
        for line in boxes["medians"] + boxes["whiskers"] + boxes["caps"]:
            line.set(color=INK, linewidth=1)
        axes.set_yticks(range(1, len(codes) + 1), [f"{code} {subsets.STRUCTURE_NAMES[code]}" for code in codes], color=INK)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _position: f"{value:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("seconds per episode (logarithmic)")
        axes.grid(visible=False, axis="y")
        svg = to_svg(drawing, "build", description)
    caption = (
        "Seconds to build one episode's memory: the box holds the middle half of the episodes, the line in it is the median, "
        "whiskers reach the extremes."
    )
    return Figure("build", "Build time by structure", svg, caption, description)


def choices_figure(choices: Sequence[int]) -> Figure | None:
    """How often the frozen policy chose each subset, one mask a question."""
    if not choices:
        return None
    counts = Counter(choices)
    shown = sorted(counts, key=lambda mask: (-counts[mask], mask))[:MAX_CHOICES]
    description = "Chosen subsets: " + "; ".join(
        f"{subsets.label(mask)} {text.percent(counts[mask] / len(choices))}" for mask in shown
    )
    with canvas(7.2, 0.9 + 0.3 * len(shown), "choices") as drawing:
        axes = drawing.subplots()
        rows = np.arange(len(shown))
        shares = [100 * counts[mask] / len(choices) for mask in shown]
        axes.barh(rows, shares, color=[_choice_colour(mask) for mask in shown], height=0.65)
        axes.set_yticks(rows, [subsets.label(mask) for mask in shown], color=INK)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("% of test questions")
        for row, share in zip(rows, shares, strict=True):
            axes.annotate(
                text.number(share, 1), (share, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9
            )
        axes.margins(x=0.1)
        svg = to_svg(drawing, "choices", description)
    caption = "Share of test questions for which the frozen policy chose each subset, all split seeds together."
    return Figure("choices", "What the frozen policy reads", svg, caption, description)


def _choice_colour(mask: int) -> str:
    codes = subsets.decode(mask)
    return STRUCTURE_COLOURS[codes[0]] if len(codes) == 1 else ALL_COLOUR if mask == subsets.FULL_SUBSET else MUTED
