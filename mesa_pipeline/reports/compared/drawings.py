"""Drawings in the shape of the paper's Figures 2 and 4."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.evaluation.system_standings import SystemStanding, grouped_standings
from mesa_pipeline.reports import text
from mesa_pipeline.reports.compared.inputs import ComparedInputs
from mesa_pipeline.reports.document import Figure, Table
from mesa_pipeline.reports.findings import GroupFinding
from mesa_pipeline.reports.group_figures import group_figure
from mesa_pipeline.reports.looks import ALL, system_look
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.tables import winners_table
from mesa_pipeline.reports.theme import INK, MARKER_EDGE, MUTED, canvas

GROUP_WIDTH = 0.84
MAX_DOMAINS = 12
AXIS_NAME_CHARS = 18


def domains_radar(inputs: ComparedInputs) -> tuple[Figure | Table, ...]:
    """Figure 2a: the best subset of structures for each domain."""
    return _winners(inputs, inputs.winners.domains, "figure-2a-domains", "domain")


def capabilities_radar(inputs: ComparedInputs) -> tuple[Figure | Table, ...]:
    """Figure 2b: the best subset of structures for each capability."""
    return _winners(inputs, inputs.winners.capabilities, "figure-2b-capabilities", "capability")


def _winners(inputs: ComparedInputs, groups: Sequence[GroupFinding], name: str, noun: str) -> tuple[Figure | Table, ...]:
    drawn = group_figure(groups, name, noun, inputs.winners.looks)
    return () if drawn is None else (drawn, winners_table(groups, f"{name}-winners", noun))


def domains_figure(inputs: ComparedInputs) -> tuple[Figure, ...]:
    """Figure 4: every baseline, all five structures and MESA by domain; nothing where there is one domain, or too many."""
    groups = grouped_standings(inputs.systems.scored, lambda question: question.domain, inputs.report.evaluation)
    shown = [
        system.code for system in inputs.systems.scored.systems if system.kind in ("baseline", "mesa") or system.code == ALL
    ]
    if not 1 < len(groups) <= MAX_DOMAINS:
        return ()
    by_domain = {name: {found.code: found for found in standings} for name, standings in groups.items()}
    description = _describe(by_domain, shown)
    with canvas(9.2, 6.6, "figure-4-domains") as drawing:
        above, below = drawing.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for place, code in enumerate(shown):
            where = np.arange(len(by_domain)) + (place - (len(shown) - 1) / 2) * GROUP_WIDTH / len(shown)
            standings = [found[code] for found in by_domain.values()]
            _draw_scores(above, where, GROUP_WIDTH / len(shown), standings)
            _draw_differences(below, where, standings)
        names = [text.printable(name, AXIS_NAME_CHARS) for name in by_domain]
        below.set_xticks(range(len(by_domain)), names, color=INK)
        below.axhline(0, color=MUTED, linewidth=1)
        above.set_ylabel("mean score x100")
        below.set_ylabel("MESA minus it")
        for axes in (above, below):
            axes.grid(visible=False, axis="x")
        handles, labels = above.get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5))
        svg = to_svg(drawing, "figure-4-domains", description)
    return (Figure("figure-4-domains", "Systems by domain", svg, _caption(inputs), description),)


def _caption(inputs: ComparedInputs) -> str:
    seeds = len(inputs.systems.scored.held_out)
    over = f"averaged over {seeds} split seeds" if seeds > 1 else "of one split seed"
    level = text.confidence(inputs.report.evaluation.confidence)
    return (
        f"Above: mean score x100 on the test questions of each domain, {over}. Below: MESA minus each system, paired by "
        f"question; above zero MESA is better. Lines are {level} bootstrap intervals that resample whole episodes, each with "
        "all its appearances in the seeds. Two systems are told apart by their difference, not by whether the lines above "
        "overlap. Table 4 has the scores."
    )


def _describe(by_domain: Mapping[str, Mapping[str, SystemStanding]], shown: Sequence[str]) -> str:
    lines = []
    for name, found in by_domain.items():
        known = [(text.printable(found[code].title), score.mean) for code in shown if (score := found[code].score)]
        scores = [f"{title} {text.score(mean, 1)}" for title, mean in known]
        lines.append(f"{text.printable(name)}: {', '.join(scores)}")
    return f"Scores of the systems by domain. {'; '.join(lines)}."


def _draw_scores(axes: Axes, where: np.ndarray, width: float, standings: Sequence[SystemStanding]) -> None:
    look = system_look(standings[0].code)
    axes.bar(
        where,
        [100 * found.score.mean if found.score else np.nan for found in standings],
        width,
        color=look.colour,
        hatch=look.hatch,
        edgecolor=MARKER_EDGE,
        linewidth=0.5,
        label=text.printable(standings[0].title),
    )
    for x, found in zip(where, standings, strict=True):
        _draw_line(axes, x, found.interval, INK)


def _draw_differences(axes: Axes, where: np.ndarray, standings: Sequence[SystemStanding]) -> None:
    look = system_look(standings[0].code)
    face = "none" if look.hatch else look.colour
    for x, found in zip(where, standings, strict=True):
        if found.behind is not None:
            _draw_line(axes, x, found.behind, look.colour)
            axes.plot(x, 100 * found.behind.mean, "o", color=look.colour, markerfacecolor=face, markersize=4)


def _draw_line(axes: Axes, where: float, found: Interval | None, colour: str) -> None:
    """An interval times a hundred; from a single episode there is none to draw."""
    if found is not None and found.clusters > 1:
        axes.plot((where, where), (100 * found.low, 100 * found.high), color=colour, linewidth=1.2)
