"""Baselines, ablations and the frozen policy in one table, in the shape of the paper's Tables 3 and 9."""

from collections.abc import Sequence

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.evaluation.aggregate import RowSummary
from mesa_pipeline.evaluation.evaluate import EvaluationKind
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, LABEL_FREE_ROW
from mesa_pipeline.evaluation.ladder import Rung
from mesa_pipeline.evaluation.statistics import Interval, MeanStd
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Cell, Column, Row, Table
from mesa_pipeline.reports.metrics import csv_text

FIRST_KINDS: tuple[EvaluationKind, ...] = ("single", "random", "zero_shot", "all", "fixed", "lookup", "route")
"""Kinds of the rows above the ablations, in order; the frozen policy and the oracle stand below."""
NAMES = {FROZEN_ROW: "MESA", LABEL_FREE_ROW: "MESA asked without labels"}
LADDER_COLUMNS = (
    "row",
    "block",
    "structures",
    "tokens",
    "score",
    "score_std",
    "seeds",
    *(f"{difference}_{end}" for difference in ("versus_all", "versus_mesa") for end in ("mean", "low", "high")),
)


def ladder_table(rungs: Sequence[Rung]) -> Table:
    """Structures read, tokens and score of every row, and its differences to all five and to the frozen policy."""
    found = ordered(rungs)
    level = next((text.confidence(rung.versus_all.confidence) for rung in found if rung.versus_all), "")
    seeds = max(rung.summary.score.n for rung in found)
    columns = (
        Column("Selection", "left"),
        Column("# structures"),
        Column("Evidence tokens", unit="per question"),
        Column("Score", unit="x100"),
        Column("Difference to all", unit="x100"),
        Column("Interval", unit=level),
        Column("Difference to MESA", unit="x100"),
        Column("Interval", unit=level),
        *((Column("Seeds"),) if any(rung.summary.score.n != seeds for rung in found) else ()),
    )
    spread = f"mean ± sample standard deviation over {seeds} split seeds"
    over = spread if seeds > 1 else "one split seed, so no spread over seeds"
    caption = (
        f"Test questions only; {over}. Differences are paired by question over the test questions of all seeds; their {level} "
        "bootstrap intervals resample whole episodes, all appearances of an episode together. They speak of these frozen "
        f"policies on other episodes, not of how policies would vary with the split.{_rows_note(found)}"
    )
    return Table(
        "ladder", "Selection compared and ablated", columns, tuple(_row(rung, len(columns)) for rung in found), caption
    )


def _rows_note(rungs: Sequence[Rung]) -> str:
    """What the rows that are there are."""
    kinds = {rung.summary.kind for rung in rungs}
    notes = [
        *(["an ablation changes one part of the search"] if any(rung.ablation for rung in rungs) else []),
        *(["lookups are fitted on the training questions"] if "lookup" in kinds else []),
        *(["the oracle picks with hindsight"] if "oracle" in kinds else []),
    ]
    said = "; ".join(notes)
    return f" {said[0].upper()}{said[1:]}." if notes else ""


def ladder_csv(rungs: Sequence[Rung]) -> str:
    """One line a row, in the order of the table."""
    return csv_text(LADDER_COLUMNS, [_line(rung) for rung in ordered(rungs)])


def ordered(rungs: Sequence[Rung]) -> list[Rung]:
    """The rows of the table in their order: singles, selections without a search, ablations, MESA, the oracle."""
    first = [rung for rung in rungs if not rung.ablation and rung.summary.kind in FIRST_KINDS]
    ablations = [rung for rung in rungs if rung.ablation]
    own = [rung for rung in rungs if not rung.ablation and rung.summary.kind == "frozen"]
    rest = [rung for rung in rungs if not rung.ablation and rung.summary.kind not in (*FIRST_KINDS, "frozen")]
    return [*sorted(first, key=lambda rung: FIRST_KINDS.index(rung.summary.kind)), *ablations, *reversed(own), *rest]


def _row(rung: Rung, width: int) -> Row:
    summary = rung.summary
    is_all = not rung.ablation and summary.kind == "all"
    cells = (
        _name_cell(rung),
        Cell(text.number(summary.structures.mean, 2), summary.structures.mean),
        Cell(text.number(summary.tokens.mean), summary.tokens.mean),
        _score_cell(summary.score),
        *_difference_cells(None if is_all else rung.versus_all),
        *_difference_cells(rung.versus_frozen),
        Cell(text.number(summary.score.n), summary.score.n),
    )
    return Row(cells[:width], highlighted=not rung.ablation and rung.name == FROZEN_ROW)


def _name_cell(rung: Rung) -> Cell:
    if rung.ablation:
        return Cell(f"MESA, {text.printable(rung.name)}")
    if rung.summary.kind == "single" and rung.name in subsets.STRUCTURE_NAMES:
        return Cell(f"{rung.name} {subsets.STRUCTURE_NAMES[rung.name]}")
    return Cell(NAMES.get(rung.name, text.printable(rung.name)))


def _score_cell(score: MeanStd) -> Cell:
    shown = text.score(score.mean)
    return Cell(shown if score.std is None else f"{shown} ± {text.score(score.std)}", score.mean)


def _difference_cells(interval: Interval | None) -> tuple[Cell, Cell]:
    if interval is None:
        return Cell(text.ABSENT, np.nan), Cell(text.ABSENT, np.nan)
    ends = text.interval(interval.low, interval.high) if interval.clusters > 1 else text.ABSENT
    return Cell(text.difference(interval.mean), interval.mean), Cell(ends, interval.low)


def _line(rung: Rung) -> tuple[str | float | None, ...]:
    summary: RowSummary = rung.summary
    intervals = [interval or Interval(np.nan, np.nan, np.nan, np.nan, 0) for interval in (rung.versus_all, rung.versus_frozen)]
    return (
        rung.name,
        "ablation" if rung.ablation else summary.kind,
        summary.structures.mean,
        summary.tokens.mean,
        summary.score.mean,
        summary.score.std,
        summary.score.n,
        *(value for interval in intervals for value in (interval.mean, interval.low, interval.high)),
    )
