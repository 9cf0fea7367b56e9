"""Systems by capability and by domain, in the shape of the paper's Tables 1, 2, 4, 5 and 7."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.evaluation.compared_systems import Comparison
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.evaluation.system_standings import SystemStanding, grouped_standings, standings_of
from mesa_pipeline.outcomes import QuestionInfo
from mesa_pipeline.reports import text
from mesa_pipeline.reports.cells import difference_cells, number_cell, score_cell, spread_cell
from mesa_pipeline.reports.compared.inputs import ComparedInputs
from mesa_pipeline.reports.document import Cell, Column, Row, Table
from mesa_pipeline.reports.paper_figures import MARGINS, MODELS, OVERALL, PaperFigure

NAME_CHARS = 40
NOT_RUN = "not run"
Group = Callable[[QuestionInfo], str | None]


@dataclass(frozen=True)
class _Plan:
    """Which table is to be made of what; ``number`` is the paper's."""

    name: str
    title: str
    number: int
    comparison: Comparison
    group: Group
    measure: str


def capabilities_table(inputs: ComparedInputs) -> tuple[Table, ...]:
    """Table 1: every system, in all and by capability; LoCoMo has Tables 2 and 7 instead."""
    if inputs.is_locomo:
        return ()
    plan = _Plan("table-1-capabilities", "Systems by capability", 1, inputs.systems.scored, _capability, _reward(inputs))
    return (_systems_table(plan, inputs),)


def locomo_table(inputs: ComparedInputs) -> tuple[Table, ...]:
    """Table 2: LoCoMo on one fixed split, the first seed's, by question type."""
    if not inputs.is_locomo:
        return ()
    first = inputs.systems.f1.only([inputs.systems.f1.held_out[0].seed])
    title = f"Systems on LoCoMo, split seed {first.held_out[0].seed}"
    return (_systems_table(_Plan("table-2-locomo", title, 2, first, _capability, "token F1"), inputs),)


def domains_table(inputs: ComparedInputs) -> tuple[Table, ...]:
    """Table 4: every system by domain, and what MESA has over the strongest other one; nothing where there is one domain."""
    if len({question.domain for part in inputs.systems.scored.held_out for question in part.questions}) < 2:
        return ()
    plan = _Plan("table-4-domains", "Systems by domain", 4, inputs.systems.scored, _domain, _reward(inputs))
    return (_systems_table(plan, inputs), *_margins_table(inputs))


def f1_table(inputs: ComparedInputs) -> tuple[Table, ...]:
    """Table 5: the same answers by token F1, whatever the reward was; on LoCoMo Tables 2 and 7 are by F1 already."""
    if inputs.is_locomo:
        return ()
    return (_systems_table(_Plan("table-5-f1", "Systems by token F1", 5, inputs.systems.f1, _capability, "token F1"), inputs),)


def locomo_splits_table(inputs: ComparedInputs) -> tuple[Table, ...]:
    """Table 7: LoCoMo over all split seeds, by question type."""
    if not inputs.is_locomo:
        return ()
    title = "Systems on LoCoMo over split seeds"
    return (_systems_table(_Plan("table-7-locomo-splits", title, 7, inputs.systems.f1, _capability, "token F1"), inputs),)


def compared_standings(inputs: ComparedInputs) -> tuple[SystemStanding, ...]:
    """The systems of the main table over all test questions, with their differences to MESA."""
    return standings_of(inputs.systems.f1 if inputs.is_locomo else inputs.systems.scored, settings=inputs.report.evaluation)


def strongest(standings: Iterable[SystemStanding]) -> SystemStanding | None:
    """The baseline with the highest score, of those that were asked every question."""
    asked = [found for found in standings if found.kind == "baseline" and found.score is not None and not found.unasked]
    return max(asked, key=lambda found: found.score.mean if found.score else 0.0, default=None)


def _capability(question: QuestionInfo) -> str | None:
    return question.qa_type


def _domain(question: QuestionInfo) -> str | None:
    return question.domain


def _reward(inputs: ComparedInputs) -> str:
    return inputs.report.provenance.get("reward", "the reward of the settings")


def _systems_table(plan: _Plan, inputs: ComparedInputs) -> Table:
    overall = standings_of(plan.comparison, settings=inputs.report.evaluation)
    groups = grouped_standings(plan.comparison, plan.group)
    papers = [name for name in (OVERALL, *groups) if any(inputs.printed(plan.number, code, name) for code in _codes(overall))]
    columns = (
        Column("System", "left"),
        Column("Overall", unit="x100"),
        *_difference_columns(inputs),
        *(Column(text.printable(name, NAME_CHARS), unit="x100") for name in groups),
        *(Column("Paper" if name == OVERALL else f"Paper, {name}", unit="x100") for name in papers),
        Column("Evidence tokens", unit="per question"),
        Column("Query tokens", unit="per question"),
        Column("Calls before the answer", unit="per question"),
        Column("Unscored", unit="questions"),
        Column("Not asked", unit="questions"),
    )
    by_code = {standing.code: standing for standing in overall}
    grouped = [{standing.code: standing for standing in groups[name]} for name in groups]
    rows = []
    for code in _codes(overall):
        known = code in by_code
        line = _cells(by_code[code], [found[code] for found in grouped]) if known else _unrun(code, len(groups))
        printed = [paper_cell(inputs.printed(plan.number, code, name)) for name in papers]
        rows.append(Row((*line.scores, *printed, *line.costs), highlighted=code == FROZEN_ROW))
    return Table(plan.name, plan.title, columns, tuple(rows), _caption(plan, inputs, overall, bool(papers)), sortable=True)


def _difference_columns(inputs: ComparedInputs) -> tuple[Column, Column]:
    """Headings of ``difference_cells``."""
    level = text.confidence(inputs.report.evaluation.confidence)
    return Column("MESA minus it", unit="x100"), Column("Interval", unit=level)


def _codes(standings: Sequence[SystemStanding]) -> list[str]:
    """Every baseline in the order of the paper, run or not, then MESA's own rows."""
    return [*BASELINES, *(standing.code for standing in standings if standing.code not in BASELINES)]


class _Line(NamedTuple):
    """A system's cells to the left and to the right of the paper's columns."""

    scores: tuple[Cell, ...]
    costs: tuple[Cell, ...]


def _cells(standing: SystemStanding, groups: Sequence[SystemStanding]) -> _Line:
    scores = (
        Cell(text.printable(standing.title)),
        score_cell(standing.score),
        *difference_cells(standing.behind),
        *(score_cell(group.score) for group in groups),
    )
    costs = (
        spread_cell(standing.tokens),
        spread_cell(standing.query_tokens),
        spread_cell(standing.calls, decimals=2),
        number_cell(standing.unscored),
        number_cell(standing.unasked),
    )
    return _Line(scores, costs)


def _unrun(code: str, groups: int) -> _Line:
    absent = Cell(text.ABSENT)
    return _Line((Cell(BASELINES[code].title), Cell(NOT_RUN), *(absent,) * (2 + groups)), (absent,) * 5)


def paper_cell(figure: PaperFigure | None) -> Cell:
    """The paper's figure as printed there."""
    if figure is None:
        return Cell(text.ABSENT)
    shown = f"{figure.value}" if figure.std is None else f"{figure.value} ± {figure.std}"
    return Cell(shown, figure.value)


def paper_note(number: int) -> str:
    """What the paper's figures in a table were made with."""
    return (
        f"Columns named Paper hold its own figures where its text gives them ({MODELS[number]}; its data, splits and judge): "
        "they are not measured here and not to be subtracted from ours."
    )


def _caption(plan: _Plan, inputs: ComparedInputs, standings: Sequence[SystemStanding], has_paper: bool) -> str:
    seeds = len(plan.comparison.held_out)
    over = (
        f"mean ± sample standard deviation over {seeds} split seeds" if seeds > 1 else "one split seed, so no spread over seeds"
    )
    partly = [text.printable(standing.title) for standing in standings if standing.unasked]
    missing = f" Run on part of the questions, and not comparable in its mean: {', '.join(partly)}." if partly else ""
    reader = text.printable(inputs.report.provenance.get("reader", "one reader"))
    printed = f" {paper_note(plan.number)}" if has_paper else ""
    return (
        f"Test questions only, by {text.printable(plan.measure)}, read by {reader} for all systems; {over}. "
        "MESA minus a system is paired by question over the test questions of all seeds, where both have a score; its "
        "bootstrap interval resamples whole episodes. Query tokens are a system's own prompts and the evidence. A dash: not "
        f"known. An unscored question is left out of means, never counted as wrong.{missing}{printed}"
    )


def _margins_table(inputs: ComparedInputs) -> tuple[Table, ...]:
    """MESA over the strongest baseline of each domain, beside the paper's; nothing where no baseline was run on all."""
    groups = grouped_standings(inputs.systems.scored, _domain)
    rows = [_margin_row(domain, best, inputs) for domain, standings in groups.items() if (best := strongest(standings))]
    columns = (
        Column("Domain", "left"),
        Column("Strongest other system", "left"),
        Column("Its score", unit="x100"),
        Column("MESA", unit="x100"),
        *_difference_columns(inputs),
        Column("Paper", unit="x100"),
    )
    caption = (
        "The strongest of the baselines that were run is picked on these same test questions, which favours it. The "
        "difference is paired by question, and its interval resamples whole episodes, as in the table above. Paper: the "
        f"same margin as Section 5.2 gives it ({MODELS[1]}), over its own baselines; a negative one is to a better system."
    )
    table = Table("table-4-margins", "MESA and the strongest other system by domain", columns, tuple(rows), caption)
    return (table,) if rows else ()


def _margin_row(domain: str, best: SystemStanding, inputs: ComparedInputs) -> Row:
    pair = inputs.systems.scored.among([best.code])
    other, mesa = standings_of(pair, lambda question: question.domain == domain, inputs.report.evaluation)
    printed = MARGINS.get(domain) if inputs.is_of_paper(4) else None
    cells = (
        Cell(text.printable(domain, NAME_CHARS)),
        Cell(text.printable(other.title)),
        score_cell(other.score),
        score_cell(mesa.score),
        *difference_cells(other.behind),
        Cell(text.ABSENT) if printed is None else Cell(text.number(printed, 1, signed=True), printed),
    )
    return Row(cells)
