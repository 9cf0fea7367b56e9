"""Policies that read the same subset for every question."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from mesa_pipeline import subsets
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext, Policy, PolicyInput, PolicyKind
from mesa_pipeline.policies.estimates import best_subset, global_means, relative_utilities
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.types import State


@dataclass(frozen=True)
class FixedPolicy(Policy):
    """Always the subset ``mask``; learns nothing."""

    mask: int

    @property
    def name(self) -> str:
        return "all" if self.mask == subsets.FULL_SUBSET else subsets.label(self.mask)

    @property
    def kind(self) -> PolicyKind:
        if self.mask == subsets.FULL_SUBSET:
            return "all"
        return "single" if self.mask in subsets.SINGLE_SUBSETS else "fixed"

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any], sandbox: Sandbox | None = None) -> Self:
        return cls(subsets.encode(spec["structures"]))

    def spec(self) -> dict[str, Any]:
        return {"type": "fixed", "structures": list(subsets.decode(self.mask))}

    def fit(self, train: OutcomeMatrix, context: FitContext) -> State:
        return {}

    def select(self, state: State, question: PolicyInput) -> int:
        return self.mask

    def explain(self, state: State, question: PolicyInput, chosen: int) -> str:
        return f"always {subsets.label(self.mask)}, whatever the question"


@dataclass(frozen=True)
class BestFixedPolicy(Policy):
    """Always the subset that was best on the training questions by J - lambda C (paper, Table 9, global)."""

    @property
    def name(self) -> str:
        return "best fixed"

    @property
    def kind(self) -> PolicyKind:
        return "fixed"

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any], sandbox: Sandbox | None = None) -> Self:
        return cls()

    def spec(self) -> dict[str, Any]:
        return {"type": "best_fixed"}

    def fit(self, train: OutcomeMatrix, context: FitContext) -> State:
        estimate = global_means(relative_utilities(train, context.lambda_))
        return {"subset": best_subset(estimate, train.tokens.mean(axis=0))}

    def select(self, state: State, question: PolicyInput) -> int:
        return int(state["subset"])
