"""The search in the shape of the paper's Figure 5: candidates with what the accepted ones score on test, and what they are."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from mesa_pipeline.evaluation.candidates import CandidateScore
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, Comparison
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports import text
from mesa_pipeline.reports.cells import difference_cells
from mesa_pipeline.reports.compared.inputs import ComparedInputs
from mesa_pipeline.reports.document import Cell, Column, Figure, Row, Table
from mesa_pipeline.reports.paper_figures import MODELS, SEARCHED
from mesa_pipeline.reports.search_figures import CANDIDATE_AXIS, describe_objective, draw_objective, objective_caption
from mesa_pipeline.reports.search_findings import INITIAL, SearchFinding
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.theme import ALL_COLOUR, INK, POLICY_COLOUR, canvas

NAME = "figure-5a-search"
HYPOTHESIS_CHARS = 240
AFTERWARDS = "Scores on test were looked at after the search and chose nothing."


def search_figure(inputs: ComparedInputs) -> tuple[Figure, ...]:
    """Figure 5a: the candidates of the first seed's search, and what each that became the best so far scores on test."""
    if not inputs.report.searches:
        return ()
    search = inputs.report.searches[0]
    tested = inputs.improvements.get(search.seed, ())
    description = describe_objective(search) + _describe(tested)
    heights = (3.0, 1.6, 1.6) if tested else (3.0,)
    with canvas(8.4, 1.4 + sum(heights), NAME) as drawing:
        panels = drawing.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        above, below = panels[0], panels[-1]
        draw_objective(above, search)
        if tested:
            _draw_tested(panels[1], search, {found.id: found.score for found in tested})
            _draw_tested(below, search, {found.id: found.versus_all for found in tested if found.id != INITIAL})
            panels[1].set_ylabel("test score x100")
            below.set_ylabel("minus all five")
            below.axhline(0, color=ALL_COLOUR, linewidth=1, linestyle="--")
        below.set_xlabel(CANDIDATE_AXIS)
        drawing.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
        svg = to_svg(drawing, NAME, description)
    return (Figure(NAME, "Objective of each candidate", svg, _caption(inputs, search, tested), description),)


def _describe(tested: Sequence[CandidateScore]) -> str:
    scores = ", ".join(f"{found.id} {text.score(found.score.mean, 1)}" for found in tested)
    return f". Scores on test of those that were the best so far: {scores}" if tested else ""


def _draw_tested(axes: Axes, search: SearchFinding, tested: Mapping[str, Interval]) -> None:
    """A figure of each improvement, from when it came until the next one."""
    places = {candidate.id: place for place, candidate in enumerate(search.tried, 1)} | {INITIAL: 0}
    marks = {INITIAL: ("D", ALL_COLOUR, 6), search.chosen: ("*", POLICY_COLOUR, 15)}
    means = [100 * found.mean for found in tested.values()]
    where = [*(places[id] for id in tested), *([len(search.tried)] if means else [])]
    axes.step(where, [*means, *means[-1:]], where="post", color=INK, linewidth=1)
    for id, found in tested.items():
        marker, colour, size = marks.get(id, ("o", INK, 4))
        if found.clusters > 1:
            axes.plot((places[id],) * 2, (100 * found.low, 100 * found.high), color=colour, linewidth=1.4)
        axes.plot(places[id], 100 * found.mean, marker, color=colour, markersize=size, zorder=6)


def _caption(inputs: ComparedInputs, search: SearchFinding, tested: Sequence[CandidateScore]) -> str:
    said = [objective_caption(search)]
    if tested:
        level = text.confidence(tested[0].score.confidence)
        said.append(
            "Below: the score on this seed's test questions of each policy that was the best so far, and its paired difference "
            f"to reading all five, with {level} bootstrap intervals over whole episodes. {AFTERWARDS}"
        )
    said += [_on_test(result.row(FROZEN_ROW)) for result in inputs.report.tests if result.seed == search.seed]
    if inputs.is_of_paper(1):
        said.append(f"The paper's search ends with a policy that scores {SEARCHED} on test ({MODELS[1]}; its data and splits).")
    return " ".join(said)


def _on_test(frozen: Comparison) -> str:
    said = f"On this seed's test questions the frozen policy scores {text.score(frozen.evaluation.score)}"
    versus_all = frozen.versus_all
    if versus_all.clusters < 2:
        return f"{said}."
    ends = text.interval(versus_all.low, versus_all.high)
    level = text.confidence(versus_all.confidence)
    return f"{said}, {text.difference(versus_all.mean)} to reading all five ({level} interval {ends})."


def accepted_table(inputs: ComparedInputs) -> tuple[Table, ...]:
    """Figure 5b: the proposals of the first seed's search that became the best so far, one after the other."""
    if not inputs.report.searches:
        return ()
    search = inputs.report.searches[0]
    tested = {found.id: found for found in inputs.improvements.get(search.seed, ())}
    level = text.confidence(inputs.report.evaluation.confidence)
    columns = (
        Column("Proposal", "left"),
        Column("Hypothesis", "left", wraps=True),
        Column("Objective", unit="validation, x100"),
        Column("Score", unit="test, x100"),
        Column("Interval", unit=level),
        Column("Difference to all", unit="test, x100"),
        Column("Interval", unit=level),
    )
    rows = tuple(_accepted_row(search, id, tested.get(id)) for id in search.improvements)
    caption = (
        f"Split seed {search.seed}: {text.plural(len(rows) - 1, 'proposal')} of {text.number(len(search.tried))} became the "
        "best so far, from reading all five on; names begin with the iteration. "
        f"{AFTERWARDS} The difference is paired by question; bootstrap intervals resample whole episodes."
    )
    return (Table("figure-5b-accepted", "Accepted proposals", columns, rows, caption),)


def _accepted_row(search: SearchFinding, id: str, tested: CandidateScore | None) -> Row:
    candidate = search.by_id[id]
    objective = candidate.worth.objective if candidate.worth else None
    cells = (
        Cell(f"{id} {candidate.direction}" if candidate.direction else id),
        Cell(text.printable(candidate.hypothesis, HYPOTHESIS_CHARS)),
        Cell(text.ABSENT if objective is None else text.score(objective), objective),
        *_score_cells(tested),
        *difference_cells(tested.versus_all if tested and id != INITIAL else None),
    )
    return Row(cells, highlighted=id == search.chosen)


def _score_cells(tested: CandidateScore | None) -> tuple[Cell, Cell]:
    """A score times a hundred and its interval."""
    if tested is None:
        return Cell(text.ABSENT), Cell(text.ABSENT)
    found = tested.score
    ends = f"{text.score(found.low)} to {text.score(found.high)}" if found.clusters > 1 else text.ABSENT
    return Cell(text.score(found.mean), found.mean), Cell(ends, found.low)
