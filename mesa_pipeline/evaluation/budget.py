"""Score against a hard limit on evidence tokens, on questions that nothing was fitted to.

Where no subset fits, nothing is read and the question counts as score 0 with 0 tokens, for every system alike. `mesa ask` fills
the room that whole evidence leaves piece by piece, of which the outcome table has no readings; what that adds is measured in
docs/decisions/0093-token-budget.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.config import EvaluationSettings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.statistics import Interval, paired_bootstrap
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import PolicyInput, policy_inputs
from mesa_pipeline.policies.budget import NOTHING, choose_within
from mesa_pipeline.policies.values import ValueModel
from mesa_pipeline.subsets import ALL_SUBSETS, SINGLE_SUBSETS, size

POLICY_CURVE = "frozen policy"
FIXED_CURVE = "best fixed subset"
SINGLE_CURVE = "best single structure"
MOST_CURVE = "most structures"
_UNLABELLED = PolicyInput("", {}, 0)


@dataclass(frozen=True)
class BudgetedPolicy:
    """What is needed of one seed's frozen policy.

    Attributes:
        choices: Mask it chose without a budget, by test question.
        values: Expected worth of the subsets, fitted to the same training questions.
    """

    choices: Mapping[str, int]
    values: ValueModel


@dataclass(frozen=True)
class BudgetPoint:
    """What one system reaches within one budget, over the test questions of all seeds.

    Attributes:
        budget: Most evidence tokens of a question.
        score: Mean score, with its interval.
        versus_fixed: Paired score difference to the best fixed subset that fits.
        tokens: Mean evidence tokens read.
        most_tokens: Most evidence tokens read for any question; never more than ``budget``.
        fitting: Share of the questions for which something fits.
    """

    budget: int
    score: Interval
    versus_fixed: Interval
    tokens: float
    most_tokens: float
    fitting: float


@dataclass(frozen=True)
class BudgetCurve:
    """One system within every budget, ascending."""

    name: str
    points: tuple[BudgetPoint, ...]


def budget_curves(
    policies: Sequence[BudgetedPolicy], matrix: OutcomeMatrix, labels: bool, settings: EvaluationSettings
) -> tuple[BudgetCurve, ...]:
    """The frozen policies within budgets, beside three ways to fill a budget that need no policy.

    An episode is in the test part of several seeds; all its appearances form one cluster of the bootstrap.

    Args:
        policies: One for each seed, at least one.
        matrix: Outcomes that hold every question tested.
        labels: Whether the policies, and so their expected values, were shown the benchmark's labels.
        settings: Budgets and bootstrap settings.

    Raises:
        ArtifactError: ``matrix`` lacks a question that was tested, or nothing of it has a score.
    """
    tables = [_SeedTable.of(policy, matrix, labels) for policy in policies]
    episodes = np.concatenate([table.matrix.episode_ids for table in tables])
    points: dict[str, list[BudgetPoint]] = {}
    for budget in sorted(set(settings.budgets)):
        read = [table.read_within(budget) for table in tables]
        reached = {name: _pooled([found[name] for found in read]) for name in read[0]}
        for name, found in reached.items():
            point = _point(budget, found, reached[FIXED_CURVE], episodes, settings)
            points.setdefault(name, []).append(point)
    return tuple(BudgetCurve(name, tuple(found)) for name, found in points.items())


@dataclass(frozen=True)
class _Read:
    """What was read for n questions: arrays of shape ``(n,)``; NaN where unscored."""

    scores: np.ndarray
    tokens: np.ndarray
    fitting: np.ndarray


@dataclass(frozen=True)
class _SeedTable:
    """The n test questions of a seed, and the worth of each subset by each way of choosing: shape ``(n, 31)`` each."""

    matrix: OutcomeMatrix
    wanted: np.ndarray
    worth: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, policy: BudgetedPolicy, matrix: OutcomeMatrix, labels: bool) -> "_SeedTable":
        tested = matrix.select(np.array([question.id in policy.choices for question in matrix.questions], dtype=bool))
        if len(tested) < len(policy.choices):
            lacking = len(policy.choices) - len(tested)
            raise ArtifactError(f"{lacking} tested questions are not in the outcome table; run `mesa sweep` again")
        rows = list(zip(policy_inputs(tested, labels), tested.tokens, strict=True))
        fixed = np.array([policy.values.worth(_UNLABELLED, tokens) for _, tokens in rows])
        sizes = np.array([float(size(mask)) for mask in ALL_SUBSETS])
        worth = {
            POLICY_CURVE: np.array([policy.values.worth(question, tokens) for question, tokens in rows]),
            FIXED_CURVE: fixed,
            SINGLE_CURVE: np.where(np.isin(ALL_SUBSETS, SINGLE_SUBSETS), fixed, -np.inf),
            MOST_CURVE: np.tile(sizes, (len(tested), 1)),
        }
        wanted = np.array([policy.choices[question.id] for question in tested.questions], dtype=np.int64)
        return cls(tested, wanted, worth)

    def read_within(self, budget: int) -> dict[str, _Read]:
        no_wish = np.full_like(self.wanted, NOTHING)
        return {
            name: self._read(choose_within(self.wanted if name == POLICY_CURVE else no_wish, worth, self.matrix.tokens, budget))
            for name, worth in self.worth.items()
        }

    def _read(self, choices: np.ndarray) -> _Read:
        rows, columns, fitting = np.arange(len(choices)), np.maximum(choices, 1) - 1, choices != NOTHING
        scores = np.where(fitting, self.matrix.scores[rows, columns], 0.0)
        return _Read(scores, np.where(fitting, self.matrix.tokens[rows, columns], 0.0), fitting)


def _pooled(parts: Sequence[_Read]) -> _Read:
    return _Read(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("scores", "tokens", "fitting")))


def _point(budget: int, found: _Read, fixed: _Read, episodes: np.ndarray, settings: EvaluationSettings) -> BudgetPoint:
    def interval(values: np.ndarray) -> Interval:
        return paired_bootstrap(values, episodes, settings.bootstrap_samples, settings.confidence, settings.bootstrap_seed)

    return BudgetPoint(
        budget=budget,
        score=interval(found.scores),
        versus_fixed=interval(found.scores - fixed.scores),
        tokens=float(found.tokens.mean()),
        most_tokens=float(found.tokens.max()),
        fitting=float(found.fitting.mean()),
    )
