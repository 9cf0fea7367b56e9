"""What building a trajectory's memory takes, in the shape of the paper's Table 8."""

from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.evaluation.system_costs import MeanCost
from mesa_pipeline.reports import text
from mesa_pipeline.reports.cells import number_cell
from mesa_pipeline.reports.compared.inputs import ComparedInputs
from mesa_pipeline.reports.compared.systems import paper_cell, paper_note
from mesa_pipeline.reports.document import Cell, Column, Row, Table


def construction_table(inputs: ComparedInputs) -> tuple[Table, ...]:
    """Table 8: seconds, calls and tokens of a trajectory's memory, each system as if built alone."""
    built = [found for found in inputs.systems.builds if found.n]
    if not built:
        return ()
    columns = (
        Column("System", "left"),
        Column("Trajectories"),
        Column("Mean", unit="s"),
        Column("Interval", unit=text.confidence(inputs.report.evaluation.confidence)),
        Column("Median", unit="s"),
        Column("Model calls", unit="mean"),
        Column("Prompt tokens", unit="mean"),
        Column("Completion tokens", unit="mean"),
        Column("Embedded tokens", unit="mean"),
        Column("Noted while building", "left", wraps=True),
        *((Column("Paper", unit="s"),) if inputs.is_of_paper(8) else ()),
    )
    caption = (
        "For each trajectory, as noted when its memory was built; what a system shares with another counts for both, as if "
        "each were built alone. The bootstrap interval of the mean resamples trajectories. Seconds are those of this machine, "
        "with whatever else it did then; replies that were kept count with the tokens they once took, but not with their time. "
        "A system is missing where none of its builds was noted with these settings."
    )
    caption += f" {paper_note(8)}" if inputs.is_of_paper(8) else ""
    rows = tuple(_row(found, inputs) for found in built)
    return (Table("table-8-construction", "Building a trajectory's memory", columns, rows, caption, sortable=True),)


def _row(found: MeanCost, inputs: ComparedInputs) -> Row:
    noted = "; ".join(f"{text.printable(name)}: {text.number(times)}" for name, times in found.notes.items())
    cells = (
        Cell(text.printable(found.title)),
        number_cell(found.n),
        Cell(text.seconds(found.seconds), found.seconds),
        _interval_cell(found.interval),
        Cell(text.seconds(found.median_seconds), found.median_seconds),
        number_cell(found.calls, 1),
        number_cell(found.prompt_tokens),
        number_cell(found.completion_tokens),
        number_cell(found.embedded_tokens),
        Cell(noted or text.ABSENT),
        *((paper_cell(inputs.printed(8, found.code)),) if inputs.is_of_paper(8) else ()),
    )
    return Row(cells, highlighted=found.code == FROZEN_ROW)


def _interval_cell(interval: Interval | None) -> Cell:
    """Both ends; from a single trajectory no interval can be learnt."""
    if interval is None or interval.clusters < 2:
        return Cell(text.ABSENT)
    return Cell(f"{text.seconds(interval.low)} to {text.seconds(interval.high)}", interval.low)
