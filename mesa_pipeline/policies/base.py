"""The promise every selection policy keeps (paper, Section 4: ``q, c -> z``)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import PolicyError
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.types import Preview, State

PolicyKind = Literal["all", "single", "fixed", "lookup", "route", "executable", "zero_shot"]


@dataclass(frozen=True)
class PolicyInput:
    """All a policy may know when it chooses: no id, no reference answer, no score of any subset.

    Attributes:
        question: Text of the question.
        meta: Benchmark labels that happen to be known, under ``domain``, ``task_type`` and ``qa_type``. A person's own question
            mostly has none; an unknown label is absent, never empty.
        steps: Number of steps of the trajectory asked about.
        previews: Glimpse of each structure's evidence, by code; computed only for a policy that reads them.
    """

    question: str
    meta: Mapping[str, str]
    steps: int
    previews: Mapping[str, Preview] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The ``q`` that an executable policy is given."""
        previews = {code: _preview_json(preview) for code, preview in self.previews.items()}
        return {"question": self.question, "meta": dict(self.meta), "steps": self.steps, "previews": previews}


@dataclass(frozen=True)
class FitContext:
    """What fitting may depend on beside the training outcomes.

    Attributes:
        lambda_: Price of one evidence token, in score.
        shrinkage: Pseudo-questions that a parent estimate counts for.
        seed: Seed of any random draw.
        max_structures: Most structures a policy may read for one question; 1 is route-to-one.
        labels: Whether policies are shown the benchmark's labels.
    """

    lambda_: float
    shrinkage: float
    seed: int
    max_structures: int = len(subsets.STRUCTURE_CODES)
    labels: bool = True

    @classmethod
    def of(cls, settings: Settings, seed: int) -> Self:
        search = settings.search
        return cls(search.lambda_, settings.policies.shrinkage, seed, search.max_structures, search.labels)


class Policy(ABC):
    """A way to choose, for each question, the structures to read.

    - ``fit`` sees training outcomes alone; equal outcomes, in any order of questions, give an equal state.
    - ``select`` depends on the state and the one question: it remembers nothing and answers any text with any labels or none.
    - ``open_policy(policy.spec())`` chooses exactly what ``policy`` does from the same state, in any process.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name shown in tables, unique among the policies compared."""

    @property
    @abstractmethod
    def kind(self) -> PolicyKind:
        """Family of the policy."""

    @property
    def reads_previews(self) -> bool:
        """Whether ``select`` looks at previews, which cost a retrieval from every structure."""
        return False

    @classmethod
    @abstractmethod
    def from_spec(cls, spec: Mapping[str, Any], sandbox: Sandbox | None = None) -> Self:
        """Inverse of ``spec``; ``sandbox`` is where a policy that is code will run."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """The policy as JSON, its class under ``type`` as registered in ``POLICIES``."""

    @abstractmethod
    def fit(self, train: OutcomeMatrix, context: FitContext) -> State:
        """Learn from the training outcomes.

        Raises:
            ArtifactError: Some training cells were never swept, or none has a score.
        """

    def fitted(self, train: OutcomeMatrix, context: FitContext) -> "FittedPolicy":
        """The policy with what it learns from the training outcomes; raises as ``fit`` does."""
        return FittedPolicy(self, self.fit(train, context))

    @abstractmethod
    def select(self, state: State, question: PolicyInput) -> int:
        """Mask of the structures to read, 1..31."""

    def select_many(self, state: State, questions: Sequence[PolicyInput]) -> list[int]:
        """One mask per question, in order; a policy that gains from batches overrides this."""
        return [self.select(state, question) for question in questions]

    def explain(self, state: State, question: PolicyInput, chosen: int) -> str:
        """One line on why ``select`` chose the mask ``chosen`` for a question."""
        return f"{self.name}: {subsets.label(chosen)}"


@dataclass(frozen=True)
class FittedPolicy:
    """A policy with what it learnt: ready to choose."""

    policy: Policy
    state: State

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def reads_previews(self) -> bool:
        return self.policy.reads_previews

    def select(self, question: PolicyInput) -> int:
        """Mask for one question.

        Raises:
            PolicyError: The policy returned something that is not one of the 31 subsets.
        """
        return int(self.choices([question])[0])

    def explain(self, question: PolicyInput, chosen: int | None = None) -> str:
        """One line on what is chosen for a question and why; ``chosen`` is what ``select`` said, where it was asked before."""
        return self.policy.explain(self.state, question, self.select(question) if chosen is None else chosen)

    def choices(self, questions: Sequence[PolicyInput]) -> np.ndarray:
        """Masks for n questions: shape ``(n,)``, integers 1..31.

        Raises:
            PolicyError: The policy returned something else.
        """
        masks = self.policy.select_many(self.state, questions)
        if len(masks) != len(questions):
            raise PolicyError(f"{self.name} chose for {len(masks)} of {len(questions)} questions")
        for mask in masks:
            if mask not in subsets.ALL_SUBSETS:
                raise PolicyError(f"{self.name} chose {mask!r}, which is not one of the subsets 1..{subsets.FULL_SUBSET}")
        return np.array(masks, dtype=np.int64)


def policy_input(question: QuestionInfo, labels: bool) -> PolicyInput:
    """What a policy is shown of a question; without ``labels``, what it would be shown of a person's own."""
    known = {"domain": question.domain, "task_type": question.task_type, "qa_type": question.qa_type}
    meta = {key: value for key, value in known.items() if value} if labels else {}
    return PolicyInput(question.text, meta, question.steps, question.previews)


def policy_inputs(matrix: OutcomeMatrix, labels: bool) -> list[PolicyInput]:
    """``policy_input`` of every question of a matrix, in order."""
    return [policy_input(question, labels) for question in matrix.questions]


def _preview_json(preview: Preview) -> dict[str, Any]:
    """By hand: ``dataclasses.asdict`` would be most of the time that encoding a split takes."""
    return {
        "text": preview.text,
        "n_items": preview.n_items,
        "tokens": preview.tokens,
        "top_score": preview.top_score,
        "scores": list(preview.scores),
        "step_ids": list(preview.step_ids),
    }
