"""Selections, lookups and judges, in the shape of the paper's Tables 3, 6 and 9, with its own figures beside ours."""

from collections.abc import Sequence
from dataclasses import replace

from mesa_pipeline.evaluation.ladder import Rung
from mesa_pipeline.reports import text
from mesa_pipeline.reports.cells import number_cell
from mesa_pipeline.reports.compared.inputs import ComparedInputs
from mesa_pipeline.reports.compared.systems import paper_cell, paper_note
from mesa_pipeline.reports.document import Cell, Column, Row, Table
from mesa_pipeline.reports.judges import judges_section
from mesa_pipeline.reports.ladder import ladder_table, ordered
from mesa_pipeline.reports.paper_figures import PaperFigure

FIXED_KINDS = ("all", "fixed", "lookup", "frozen")
COST_COLUMNS = (Column("Paper, # structures"), Column("Paper, evidence tokens", unit="per question"))


def selection_table(inputs: ComparedInputs) -> tuple[Table, ...]:
    """Table 3: single structures, selections without learning, and the ablations that were tested."""
    title = "Selection compared and ablated"
    return _with_paper(inputs, inputs.report.ladder, 3, "table-3-selection", title, "Ablations that were not run are missing.")


def fixed_selection_table(inputs: ComparedInputs) -> tuple[Table, ...]:
    """Table 9: one subset for all, for each domain, for each capability, and for both."""
    rungs = [rung for rung in inputs.report.ladder if not rung.ablation and rung.summary.kind in FIXED_KINDS]
    note = "The paper fits its lookups on the validation questions."
    return _with_paper(inputs, rungs, 9, "table-9-fixed-selection", "Fixed selection by coarse labels", note)


def judges_tables(inputs: ComparedInputs) -> tuple[Table, ...]:
    """Table 6: further judges on the same answers; nothing where none was asked."""
    if not inputs.report.judged:
        return ()
    names = {"judges": "table-6-judges", "leads": "table-6-leads", "agreement": "table-6-agreement"}
    items = judges_section(inputs.report.judged, inputs.report.leads).items
    return tuple(replace(item, name=names[item.name]) for item in items if isinstance(item, Table))


def _with_paper(
    inputs: ComparedInputs, rungs: Sequence[Rung], number: int, name: str, title: str, note: str
) -> tuple[Table, ...]:
    """The ladder's table, with the paper's columns on its own data set; nothing where no policy was tested."""
    if not rungs:
        return ()
    ours = replace(ladder_table(rungs), name=name, title=title)
    ours = replace(ours, caption=f"{ours.caption} {note}")
    if not inputs.is_of_paper(number):
        return (ours,)
    printed = [inputs.printed(number, rung.name) for rung in ordered(rungs)]
    has_costs = any(figure is not None and figure.tokens is not None for figure in printed)
    columns = (*ours.columns, Column("Paper", unit="x100"), *(COST_COLUMNS if has_costs else ()))
    rows = tuple(
        Row((*row.cells, paper_cell(figure), *(_cost_cells(figure) if has_costs else ())), row.highlighted)
        for row, figure in zip(ours.rows, printed, strict=True)
    )
    return (replace(ours, columns=columns, rows=rows, caption=f"{ours.caption} {paper_note(number)}"),)


def _cost_cells(figure: PaperFigure | None) -> tuple[Cell, ...]:
    """What the paper's selection reads, in the order of ``COST_COLUMNS``."""
    if figure is None or figure.structures is None or figure.tokens is None:
        return (Cell(text.ABSENT),) * len(COST_COLUMNS)
    return number_cell(figure.structures, 1), number_cell(figure.tokens)
