"""Policies that look the subset up by benchmark labels (paper, Table 9), raw or shrunk, and route-to-one.

Each combination of label values is a cell; leaving labels open gives the wider cells it belongs to, up to the one of all
questions. A shrunk lookup pulls the estimate of a cell towards the mean of its parents, the cells with one label fewer, which
were shrunk before it. A raw lookup trusts a cell however few questions it has. Either way a label that is absent, or was never
seen in training, is left open, so every question has a cell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.errors import PolicyError
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext, Policy, PolicyInput, PolicyKind, State, policy_inputs
from mesa_pipeline.policies.estimates import best_subset, global_means, relative_utilities, shrunk_means

LABEL_NAMES = {"domain": "domain", "task_type": "task", "qa_type": "capability"}
Cell = tuple[str | None, ...]
"""One value per key of the lookup; ``None`` leaves the key open."""


@dataclass(frozen=True)
class LookupPolicy(Policy):
    """The subset that was best on the training questions with the same labels.

    Attributes:
        keys: Labels to look up by, out of ``LABEL_NAMES``; at least one.
        shrunk: Whether small cells lean on wider ones.
        single: Whether only single structures may be chosen: this is route-to-one.
    """

    keys: tuple[str, ...]
    shrunk: bool
    single: bool = False

    def __post_init__(self) -> None:
        unknown = [key for key in self.keys if key not in LABEL_NAMES]
        if unknown or not self.keys or len(set(self.keys)) != len(self.keys):
            raise PolicyError(f"a lookup needs distinct keys out of {', '.join(LABEL_NAMES)}; got {list(self.keys)}")

    @property
    def name(self) -> str:
        return "route-to-one" if self.single else f"{self._title} ({'shrunk' if self.shrunk else 'raw'})"

    @property
    def kind(self) -> PolicyKind:
        return "route" if self.single else "lookup"

    @property
    def _title(self) -> str:
        return ("route-to-one by " if self.single else "lookup by ") + " x ".join(LABEL_NAMES[key] for key in self.keys)

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        return cls(tuple(spec["keys"]), bool(spec["shrunk"]), bool(spec["single"]))

    def spec(self) -> dict[str, Any]:
        return {"type": "lookup", "keys": list(self.keys), "shrunk": self.shrunk, "single": self.single}

    def fit(self, train: OutcomeMatrix, context: FitContext) -> State:
        """Choose a subset for every cell; the state also holds how many training questions each has."""
        strength = context.shrinkage if self.shrunk else 0.0
        allowed = subsets.SINGLE_SUBSETS if self.single else subsets.ALL_SUBSETS
        utilities = relative_utilities(train, context.lambda_)
        tokens = train.tokens.mean(axis=0)
        labels = _label_columns(train, self.keys)
        values = {key: sorted({value for value in labels[key] if value is not None}) for key in self.keys}
        estimates: dict[Cell, np.ndarray] = {}
        cells: dict[str, dict[str, int]] = {}
        for cell in _widest_first([values[key] for key in self.keys]):
            members = _members(cell, [labels[key] for key in self.keys])
            parents = [estimates[parent] for parent in _parents(cell)]
            estimates[cell] = (
                shrunk_means(utilities[members], np.mean(parents, axis=0), strength) if parents else global_means(utilities)
            )
            subset = best_subset(estimates[cell], tokens, allowed)
            cells[dump_json(cell)] = {"subset": subset, "questions": int(members.sum())}
        return {"values": values, "cells": cells}

    def select(self, state: State, question: PolicyInput) -> int:
        return int(state["cells"][dump_json(self._cell(state, question))]["subset"])

    def explain(self, state: State, question: PolicyInput) -> str:
        cell = self._cell(state, question)
        named = [value if value is not None else f"any {LABEL_NAMES[key]}" for key, value in zip(self.keys, cell, strict=True)]
        return f"{self._title}: {', '.join(named)} -> {subsets.label(self.select(state, question))}"

    def _cell(self, state: State, question: PolicyInput) -> Cell:
        given = (question.meta.get(key) for key in self.keys)
        return tuple(value if value in state["values"][key] else None for key, value in zip(self.keys, given, strict=True))


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


def _members(cell: Cell, columns: Sequence[np.ndarray]) -> np.ndarray:
    """Which questions belong to a cell: boolean, shape ``(n,)``."""
    members = np.full(len(columns[0]), True)
    for value, column in zip(cell, columns, strict=True):
        if value is not None:
            members &= column == value
    return members
