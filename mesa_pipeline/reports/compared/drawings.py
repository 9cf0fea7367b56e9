"""Drawings in the shape of the paper's Figures 2, 4 and 5."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes

from mesa_pipeline.evaluation.held_out import FROZEN_ROW, Comparison
from mesa_pipeline.evaluation.system_standings import SystemStanding, grouped_standings
from mesa_pipeline.reports import text
from mesa_pipeline.reports.compared.inputs import ComparedInputs
from mesa_pipeline.reports.document import Figure
from mesa_pipeline.reports.findings import group_findings
from mesa_pipeline.reports.group_figures import group_figure
from mesa_pipeline.reports.paper_figures import MODELS, SEARCHED
from mesa_pipeline.reports.search_figures import objective_figure
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.theme import DOTS, INK, MARKER_EDGE, POLICY_COLOUR, SUBSET_COLOURS, canvas

ALL = "all"
GROUP_WIDTH = 0.84
MAX_DOMAINS = 12
HATCHES = ("", "////")
AXIS_NAME_CHARS = 18


def domains_radar(inputs: ComparedInputs) -> tuple[Figure, ...]:
    """Figure 2a: the best subset of structures for each domain."""
    found = group_figure(group_findings(inputs.report.matrix, lambda q: q.domain), "figure-2a-domains", "domain")
    return () if found is None else (found,)


def capabilities_radar(inputs: ComparedInputs) -> tuple[Figure, ...]:
    """Figure 2b: the best subset of structures for each capability."""
    found = group_figure(group_findings(inputs.report.matrix, lambda q: q.qa_type), "figure-2b-capabilities", "capability")
    return () if found is None else (found,)


def domains_figure(inputs: ComparedInputs) -> tuple[Figure, ...]:
    """Figure 4: every baseline, all five structures and MESA by domain; nothing where there is one domain, or too many."""
    groups = grouped_standings(inputs.systems.scored, lambda question: question.domain)
    shown = [
        system.code for system in inputs.systems.scored.systems if system.kind in ("baseline", "mesa") or system.code == ALL
    ]
    if not 1 < len(groups) <= MAX_DOMAINS:
        return ()
    by_domain = {name: {found.code: found for found in standings} for name, standings in groups.items()}
    description = _describe(by_domain, shown)
    with canvas(9.2, 4.6, "figure-4-domains") as drawing:
        axes = drawing.subplots()
        for place, code in enumerate(shown):
            _draw_system(axes, place, len(shown), [found[code] for found in by_domain.values()])
        names = [text.printable(name, AXIS_NAME_CHARS) for name in by_domain]
        axes.set_xticks(range(len(by_domain)), names, color=INK)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("mean score x100")
        handles, labels = axes.get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5))
        svg = to_svg(drawing, "figure-4-domains", description)
    seeds = len(inputs.systems.scored.held_out)
    spread = f"averaged over {seeds} split seeds. The line is one sample standard deviation over them"
    over = spread if seeds > 1 else "of one split seed, so no spread over seeds"
    caption = f"Mean score x100 on the test questions of each domain, {over}. Table 4 has the figures."
    return (Figure("figure-4-domains", "Systems by domain", svg, caption, description),)


def search_figure(inputs: ComparedInputs) -> tuple[Figure, ...]:
    """Figure 5: the candidates of the first seed's search, the best so far, and what the policy it ends with scores on test."""
    if not inputs.report.searches:
        return ()
    search = inputs.report.searches[0]
    drawn = objective_figure(search)
    said = [_on_test(result.row(FROZEN_ROW)) for result in inputs.report.tests if result.seed == search.seed]
    if inputs.is_of_paper(1):
        said.append(f"The paper's search ends with a policy that scores {SEARCHED} on test ({MODELS[1]}; its data and splits).")
    return (replace(drawn, name="figure-5-search", caption=" ".join([drawn.caption, *said])),)


def _on_test(frozen: Comparison) -> str:
    said = f"On this seed's test questions the frozen policy scores {text.score(frozen.evaluation.score)}"
    versus_all = frozen.versus_all
    if versus_all.clusters < 2:
        return f"{said}."
    ends = text.interval(versus_all.low, versus_all.high)
    level = text.confidence(versus_all.confidence)
    return f"{said}, {text.difference(versus_all.mean)} to reading all five ({level} interval {ends})."


def _describe(by_domain: Mapping[str, Mapping[str, SystemStanding]], shown: Sequence[str]) -> str:
    lines = []
    for name, found in by_domain.items():
        known = [(text.printable(found[code].title), score.mean) for code in shown if (score := found[code].score)]
        scores = [f"{title} {text.score(mean, 1)}" for title, mean in known]
        lines.append(f"{text.printable(name)}: {', '.join(scores)}")
    return f"Scores of the systems by domain. {'; '.join(lines)}."


def _draw_system(axes: Axes, place: int, systems: int, standings: Sequence[SystemStanding]) -> None:
    width = GROUP_WIDTH / systems
    where = np.arange(len(standings)) + (place - (systems - 1) / 2) * width
    means = [100 * found.score.mean if found.score else np.nan for found in standings]
    spreads = [100 * (found.score.std or 0.0) if found.score else 0.0 for found in standings]
    code = standings[0].code
    colour = {FROZEN_ROW: POLICY_COLOUR, ALL: DOTS}.get(code, SUBSET_COLOURS[place % len(SUBSET_COLOURS)])
    hatch = "" if code in (FROZEN_ROW, ALL) else HATCHES[place // len(SUBSET_COLOURS) % len(HATCHES)]
    axes.bar(
        where,
        means,
        width,
        yerr=spreads if any(spreads) else None,
        color=colour,
        hatch=hatch,
        edgecolor=MARKER_EDGE,
        linewidth=0.5,
        error_kw={"ecolor": INK, "elinewidth": 1},
        label=text.printable(standings[0].title),
    )
