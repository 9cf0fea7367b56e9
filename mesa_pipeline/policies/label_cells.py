"""Cells of questions that share benchmark labels, and what each subset is worth in them.

Each combination of label values is a cell; leaving labels open gives the wider cells it belongs to, up to the one of all
questions. A label that is absent, or was never seen in training, is left open, so every question has a cell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np

from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import PolicyInput, policy_inputs
from mesa_pipeline.policies.estimates import global_means, shrunk_means

Cell: TypeAlias = tuple[str | None, ...]
"""One value per key; ``None`` leaves the key open."""


@dataclass(frozen=True)
class CellEstimate:
    """What is known of one cell.

    Attributes:
        utilities: Shape ``(31,)``; minus infinity for a subset that was never scored anywhere.
        questions: Number of training questions in the cell.
    """

    utilities: np.ndarray
    questions: int


@dataclass(frozen=True)
class CellTable:
    """Every cell of some labels, the widest first.

    Attributes:
        values: Values seen in training, by key, sorted.
        estimates: By cell, cells with fewer values first.
    """

    values: Mapping[str, Sequence[str]]
    estimates: Mapping[Cell, CellEstimate]


def estimate_cells(train: OutcomeMatrix, keys: Sequence[str], utilities: np.ndarray, strength: float) -> CellTable:
    """Estimate every cell, pulling it towards the mean of its parents, the cells with one label fewer, estimated before it.

    Args:
        train: The n training questions.
        keys: Labels whose combinations are cells.
        utilities: Shape ``(n, 31)``; NaN where unscored.
        strength: Pseudo-questions that the parents count for; 0 trusts a cell however few questions it has.
    """
    labels = _label_columns(train, keys)
    values = {key: sorted({value for value in labels[key] if value is not None}) for key in keys}
    estimates: dict[Cell, CellEstimate] = {}
    for cell in _widest_first([values[key] for key in keys]):
        members = _members(cell, [labels[key] for key in keys], len(train))
        parents = [estimates[parent].utilities for parent in _parents(cell)]
        found = shrunk_means(utilities[members], np.mean(parents, axis=0), strength) if parents else global_means(utilities)
        estimates[cell] = CellEstimate(found, int(members.sum()))
    return CellTable(values, estimates)


def cell_of(question: PolicyInput, keys: Sequence[str], values: Mapping[str, Sequence[str]]) -> Cell:
    """The narrowest cell that a question is known to be in."""
    given = (question.meta.get(key) for key in keys)
    return tuple(value if value in values[key] else None for key, value in zip(keys, given, strict=True))


def _label_columns(train: OutcomeMatrix, keys: Sequence[str]) -> dict[str, np.ndarray]:
    """Value of each label for every training question, ``None`` where unknown: object arrays of shape ``(n,)``."""
    inputs = policy_inputs(train, labels=True)
    return {key: np.array([question.meta.get(key) for question in inputs], dtype=object) for key in keys}


def _widest_first(values: Sequence[Sequence[str]]) -> Iterator[Cell]:
    """Every combination of values and open keys, cells with fewer values first."""
    cells: list[Cell] = list(product(*([None, *known] for known in values)))
    return iter(sorted(cells, key=lambda cell: sum(value is not None for value in cell)))


def _parents(cell: Cell) -> list[Cell]:
    """The cells with one value fewer; none for the cell of all questions."""
    return [(*cell[:k], None, *cell[k + 1 :]) for k, value in enumerate(cell) if value is not None]


def _members(cell: Cell, columns: Sequence[np.ndarray], questions: int) -> np.ndarray:
    """Which questions belong to a cell: boolean, shape ``(n,)``."""
    members = np.full(questions, True)
    for value, column in zip(cell, columns, strict=True):
        if value is not None:
            members &= column == value
    return members
