"""Policies that look the subset up by benchmark labels (paper, Table 9), raw or shrunk, and route-to-one.

A question is looked up in the narrowest cell of its labels (see ``label_cells``). A shrunk lookup pulls the estimate of a cell
towards the wider ones; a raw lookup trusts a cell however few questions it has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.errors import PolicyError
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext, Policy, PolicyInput, PolicyKind
from mesa_pipeline.policies.estimates import best_subset, relative_utilities
from mesa_pipeline.policies.label_cells import Cell, cell_of, estimate_cells
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.types import State

LABEL_NAMES = {"domain": "domain", "task_type": "task", "qa_type": "capability"}


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
    def from_spec(cls, spec: Mapping[str, Any], sandbox: Sandbox | None = None) -> Self:
        return cls(tuple(spec["keys"]), bool(spec["shrunk"]), bool(spec["single"]))

    def spec(self) -> dict[str, Any]:
        return {"type": "lookup", "keys": list(self.keys), "shrunk": self.shrunk, "single": self.single}

    def fit(self, train: OutcomeMatrix, context: FitContext) -> State:
        """Choose a subset for every cell; the state also holds how many training questions each has."""
        strength = context.shrinkage if self.shrunk else 0.0
        allowed = subsets.SINGLE_SUBSETS if self.single else subsets.ALL_SUBSETS
        tokens = train.tokens.mean(axis=0)
        table = estimate_cells(train, self.keys, relative_utilities(train, context.lambda_), strength)
        cells = {
            dump_json(cell): {"subset": best_subset(found.utilities, tokens, allowed), "questions": found.questions}
            for cell, found in table.estimates.items()
        }
        return {"values": table.values, "cells": cells}

    def select(self, state: State, question: PolicyInput) -> int:
        return int(state["cells"][dump_json(self._cell(state, question))]["subset"])

    def explain(self, state: State, question: PolicyInput, chosen: int) -> str:
        cell = self._cell(state, question)
        named = [value if value is not None else f"any {LABEL_NAMES[key]}" for key, value in zip(self.keys, cell, strict=True)]
        return f"{self._title}: {', '.join(named)} -> {subsets.label(chosen)}"

    def _cell(self, state: State, question: PolicyInput) -> Cell:
        return cell_of(question, self.keys, state["values"])
