"""Drawings of what each structure is worth, how structures work together, and what choosing better could gain."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from mesa_pipeline import subsets
from mesa_pipeline.evaluation.credit import PAIRS, GroupCredit
from mesa_pipeline.evaluation.regret import Decomposition, Rung, RungKind
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Figure
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.theme import ALL_COLOUR, DOTS, INK, MARKER_EDGE, MUTED, POLICY_COLOUR, STRUCTURE_COLOURS, canvas

GROUP_NAME_CHARS = 20
BLOCK_GAP = 0.6
STRONGEST_TINT = 0.65
TOGETHER_COLOUR, REDUNDANT_COLOUR = "#e69f00", "#0072b2"
RUNG_COLOURS: dict[RungKind, str] = {"all": INK, "held-out": ALL_COLOUR, "policy": POLICY_COLOUR, "hindsight": DOTS}


def credit_figure(blocks: Sequence[Sequence[GroupCredit]]) -> Figure:
    """Shapley values of the five structures: one panel for each, one line for each group; blocks stand a little apart."""
    groups = [group for block in blocks for group in block]
    rows = _rows(blocks)
    overall = groups[0]
    level = text.confidence(overall.shapley[0].confidence)
    description = f"Mean Shapley values over {overall.name}: " + "; ".join(
        f"{subsets.STRUCTURE_NAMES[code]} {text.difference(value.mean, 1)}"
        for code, value in zip(subsets.STRUCTURE_CODES, overall.shapley, strict=True)
    )
    with canvas(8.4, 1.0 + 0.29 * (rows[-1] + 1), "credit") as drawing:
        panels = drawing.subplots(1, len(subsets.STRUCTURE_CODES), sharex=True, sharey=True)
        for k, (code, axes) in enumerate(zip(subsets.STRUCTURE_CODES, panels, strict=True)):
            for row, group in zip(rows, groups, strict=True):
                _draw_value(axes, row, group.shapley[k], STRUCTURE_COLOURS[code])
            axes.set_title(f"{code} {subsets.STRUCTURE_NAMES[code]}", fontsize=10)
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
            axes.axvline(0, color=MUTED, linewidth=1)
        panels[0].set_yticks(rows, [text.printable(group.name, GROUP_NAME_CHARS) for group in groups], color=INK)
        panels[0].get_yticklabels()[0].set_fontweight("bold")
        panels[0].invert_yaxis()
        drawing.supxlabel("mean Shapley value, score x100", color=MUTED, fontsize=10)
        svg = to_svg(drawing, "credit", description)
    caption = (
        "How much of the score of reading all five is due to each structure: its gain, averaged over all orders in which "
        f"the five could be added one after the other. The line is the {level} bootstrap interval over episodes. The five "
        "values of a line add up to the score of all five, so a structure can have a high value and yet not be missed where "
        "another gives the same."
    )
    return Figure("credit", "What each structure is worth", svg, caption, description)


def _rows(blocks: Sequence[Sequence[GroupCredit]]) -> list[float]:
    """Where each group's line stands, from the top."""
    rows: list[float] = []
    for block in blocks:
        first = rows[-1] + 1 + BLOCK_GAP if rows else 0.0
        rows += [first + k for k in range(len(block))]
    return rows


def _draw_value(axes: Axes, row: float, value: Interval, colour: str) -> None:
    axes.barh(row, 100 * value.mean, height=0.62, color=colour, alpha=0.45, linewidth=0)
    axes.plot((100 * value.low, 100 * value.high), (row, row), color=colour, linewidth=1.8)


def interactions_figure(group: GroupCredit) -> Figure:
    """Mean interaction of each pair of structures: a heat map, and the values with their intervals."""
    pairs = [f"{subsets.STRUCTURE_CODES[i]}+{subsets.STRUCTURE_CODES[j]}" for i, j in PAIRS]
    level = text.confidence(group.interactions[0].confidence)
    description = "Mean interaction of each pair: " + "; ".join(
        f"{pair} {text.difference(value.mean, 1)}" for pair, value in zip(pairs, group.interactions, strict=True)
    )
    with canvas(8.4, 3.3, "interactions") as drawing:
        left, right = drawing.subplots(1, 2, width_ratios=(5, 4))
        _draw_heat_map(left, group)
        for row, value in enumerate(group.interactions):
            colour = _pair_colour(value)
            right.plot((100 * value.low, 100 * value.high), (row, row), color=colour, linewidth=1.8)
            right.plot(100 * value.mean, row, "o", color=colour, markersize=6)
        right.set_yticks(range(len(pairs)), pairs, color=INK)
        right.invert_yaxis()
        right.axvline(0, color=MUTED, linewidth=1)
        right.grid(visible=False, axis="y")
        right.spines["left"].set_visible(False)
        right.set_xlabel(f"interaction, score x100, {level} interval")
        svg = to_svg(drawing, "interactions", description)
    caption = (
        "Shapley interaction of each pair, mean over all questions. Below zero (blue) one makes the other redundant: together "
        "they are worth less than each alone adds up to. Above zero (orange) they need each other. Reading nothing counts, so "
        "any two structures that can stand in for each other are below zero."
    )
    return Figure("interactions", "How the structures work together", svg, caption, description)


def _draw_heat_map(axes: Axes, group: GroupCredit) -> None:
    strongest = max(abs(value.mean) for value in group.interactions) or 1.0
    for (i, j), value in zip(PAIRS, group.interactions, strict=True):
        tint = STRONGEST_TINT * abs(value.mean) / strongest
        corner = (i - 0.5, j - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, facecolor=_pair_colour(value), alpha=tint, edgecolor=MARKER_EDGE, linewidth=1.5))
        axes.text(i, j, text.difference(value.mean, 1), ha="center", va="center", color=INK, fontsize=10)
    names = [f"{code} {subsets.STRUCTURE_NAMES[code]}" for code in subsets.STRUCTURE_CODES]
    last = len(names) - 1
    axes.set_xlim(-0.5, last - 0.5)
    axes.set_ylim(last + 0.5, 0.5)
    axes.set_xticks(range(last), names[:-1], color=INK)
    axes.set_yticks(range(1, last + 1), names[1:], color=INK)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _pair_colour(value: Interval) -> str:
    return TOGETHER_COLOUR if value.mean > 0 else REDUNDANT_COLOUR


def regret_figure(found: Decomposition) -> Figure:
    """What each way of choosing gains over reading all five."""
    rungs = [rung for rung in found.rungs if rung.kind != "all"]
    level = text.confidence(rungs[0].gain.confidence)
    description = "Gain over reading all five: " + "; ".join(
        f"{rung.name} ({rung.kind}) {text.difference(rung.gain.mean)}" for rung in rungs
    )
    with canvas(8.4, 1.0 + 0.32 * len(rungs), "regret") as drawing:
        axes = drawing.subplots()
        for row, rung in enumerate(rungs):
            _draw_rung(axes, row, rung)
        axes.set_yticks(range(len(rungs)), [rung.name for rung in rungs], color=INK)
        for label, rung in zip(axes.get_yticklabels(), rungs, strict=True):
            label.set_fontweight("bold" if rung.kind == "policy" else "normal")
        axes.invert_yaxis()
        axes.axvline(0, color=MUTED, linewidth=1)
        axes.margins(x=0.12)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"gain over reading all five, score less token price, x100, {level} interval")
        svg = to_svg(drawing, "regret", description)
    caption = (
        "Blue: chosen by other questions than it is measured on, five folds of whole episodes, so that it could be had by "
        "somebody with that much to learn from. Red: the frozen policies, which learnt from the training part alone. Grey: "
        "chosen and measured on the same questions, an upper bound and not a goal; shuffling which question has which "
        "outcomes would leave the oracle as it is."
    )
    return Figure("regret", "What choosing better could gain", svg, caption, description)


def _draw_rung(axes: Axes, row: int, rung: Rung) -> None:
    colour = RUNG_COLOURS[rung.kind]
    axes.barh(
        row, 100 * rung.gain.mean, height=0.62, color=colour, alpha=0.55 if rung.kind != "hindsight" else 0.8, linewidth=0
    )
    axes.plot((100 * rung.gain.low, 100 * rung.gain.high), (row, row), color=MUTED if rung.kind == "hindsight" else colour)
    end = 100 * max(rung.gain.mean, rung.gain.high, 0.0)
    axes.annotate(
        text.difference(rung.gain.mean), (end, row), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9
    )
