"""Cells that several tables have in common."""

import numpy as np

from mesa_pipeline.evaluation.statistics import Interval, MeanStd
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Cell


def spread_cell(value: MeanStd | None, scale: float = 1.0, decimals: int = 0) -> Cell:
    """A mean with its deviation, where there is one; a dash where nothing is known."""
    if value is None:
        return Cell(text.ABSENT)
    shown = text.number(scale * value.mean, decimals)
    return Cell(shown if value.std is None else f"{shown} ± {text.number(scale * value.std, decimals)}", value.mean)


def score_cell(value: MeanStd | None) -> Cell:
    """A score times a hundred, with its deviation."""
    return spread_cell(value, 100.0, 2)


def number_cell(value: float, decimals: int = 0) -> Cell:
    """A number; a dash where it is not finite."""
    return Cell(text.number(value, decimals), value if np.isfinite(value) else None)


def difference_cells(interval: Interval | None) -> tuple[Cell, Cell]:
    """A score difference times a hundred and its interval; from a single episode no interval can be learnt."""
    if interval is None:
        return Cell(text.ABSENT), Cell(text.ABSENT)
    ends = text.interval(interval.low, interval.high) if interval.clusters > 1 else text.ABSENT
    return Cell(text.difference(interval.mean), interval.mean), Cell(ends, interval.low)
