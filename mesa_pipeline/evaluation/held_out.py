"""The one test of a frozen policy, beside every baseline, on questions nothing was fitted to."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.config import Settings
from mesa_pipeline.evaluation.evaluate import (
    Evaluation,
    EvaluationKind,
    PerQuestion,
    evaluate_policy,
    fully_scored,
    oracle_choices,
    outcomes_of,
    random_outcomes,
)
from mesa_pipeline.evaluation.statistics import Interval, paired_bootstrap
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies import FitContext, FittedPolicy, Policy, baseline_policies
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.subsets import FULL_SUBSET

FROZEN_ROW = "frozen policy"
LABEL_FREE_ROW = "frozen policy, label-free"


@dataclass(frozen=True)
class Comparison:
    """One row of the test: what a policy is worth, and its paired score difference to reading all five structures."""

    evaluation: Evaluation
    versus_all: Interval


@dataclass(frozen=True)
class Receipt:
    """Proof of what was tested on what.

    Attributes:
        manifest_sha256: Hash of the frozen policy's manifest.
        outcomes_sha256: Hash of the test outcomes (``outcomes_sha256``).
        tested_at: When, as ISO 8601.
    """

    manifest_sha256: str
    outcomes_sha256: str
    tested_at: str

    def matches(self, manifest_sha256: str, outcomes_sha256: str) -> bool:
        """Whether this is the receipt of that policy on those outcomes, so that there is nothing left to test."""
        return (self.manifest_sha256, self.outcomes_sha256) == (manifest_sha256, outcomes_sha256)


@dataclass(frozen=True)
class SplitOutcomes:
    """Outcomes of the three parts of a split."""

    train: OutcomeMatrix
    validation: OutcomeMatrix
    test: OutcomeMatrix


@dataclass(frozen=True)
class TestResult:
    """Outcome of the one test.

    Attributes:
        dataset: Name of the dataset.
        seed: Split seed.
        frozen: Name of the frozen policy.
        comparisons: Rows: the frozen policy (``FROZEN_ROW``), the same without benchmark labels (``LABEL_FREE_ROW``), then
            every baseline fitted on train, random and the oracle.
        choices: Mask the frozen policy chose, with labels, by question id.
        validation: The frozen policy on the validation questions it was chosen on.
        receipt: What was tested on what, and when.
        others: Masks that every other row chose, by its name, in the order of the question ids; random chooses none.
        asked: The language model behind a row that one decides, by the row's name.
        earlier: Receipts of other tests of this split seed, oldest first: who has tested and chosen again has seen the answers.
    """

    dataset: str
    seed: int
    frozen: str
    comparisons: tuple[Comparison, ...]
    choices: Mapping[str, int]
    validation: Evaluation
    receipt: Receipt
    others: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    earlier: tuple[Receipt, ...] = ()

    @property
    def inflation(self) -> float:
        """Validation score minus test score of the frozen policy: the price of having picked the winner."""
        return self.validation.score - self.row(FROZEN_ROW).evaluation.score

    def row(self, name: str) -> Comparison:
        """The comparison of that name; the frozen policy's rows have names of their own.

        Raises:
            KeyError: There is none.
        """
        for comparison in self.comparisons:
            if comparison.evaluation.name == name:
                return comparison
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "inflation": self.inflation}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``to_json``."""
        return cls(
            dataset=value["dataset"],
            seed=value["seed"],
            frozen=value["frozen"],
            comparisons=tuple(
                Comparison(Evaluation(**row["evaluation"]), Interval(**row["versus_all"])) for row in value["comparisons"]
            ),
            choices=dict(value["choices"]),
            validation=Evaluation(**value["validation"]),
            receipt=Receipt(**value["receipt"]),
            others={name: tuple(masks) for name, masks in value.get("others", {}).items()},
            asked=dict(value.get("asked", {})),
            earlier=tuple(Receipt(**receipt) for receipt in value.get("earlier", ())),
        )


def outcomes_sha256(matrix: OutcomeMatrix) -> str:
    """Hash of questions, scores and tokens, in order."""
    digest = hashlib.sha256(dump_json([asdict(question) for question in matrix.questions]).encode("ascii"))
    for array in (matrix.scores, matrix.tokens):
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()


def held_out_test(
    frozen: FittedPolicy,
    splits: SplitOutcomes,
    dataset: str,
    seed: int,
    receipt: Receipt,
    settings: Settings,
    further: Sequence[Policy] = (),
) -> TestResult:
    """Test a frozen policy, and every baseline beside it, on the test questions, which nothing was fitted to or chosen on.

    Args:
        frozen: The frozen policy with its state.
        splits: Outcomes of the three parts; the validation part serves to state the inflation.
        dataset: Name of the dataset.
        seed: Split seed.
        receipt: Names the policy, the outcomes and the time.
        settings: Token price, baselines and bootstrap.
        further: Policies to test beside the baselines.

    Raises:
        ArtifactError: A cell needed was never swept, or nothing needed has a score.
    """
    test, search = splits.test, settings.search
    choices = frozen.choices(policy_inputs(test, search.labels))
    others = [
        _policy_row(frozen, test, LABEL_FREE_ROW, "frozen", labels=False),
        *_baseline_rows(splits, FitContext.of(settings, seed), [*baseline_policies(settings.policies), *further]),
        *_bounds(test, search.lambda_),
    ]
    return TestResult(
        dataset=dataset,
        seed=seed,
        frozen=frozen.name,
        comparisons=_compare([_chosen_row(FROZEN_ROW, "frozen", test, choices), *others], test, settings),
        choices={question.id: int(mask) for question, mask in zip(test.questions, choices, strict=True)},
        validation=evaluate_policy(frozen, fully_scored(splits.validation), search.lambda_, search.labels),
        receipt=receipt,
        others=_by_id(others, test),
    )


@dataclass(frozen=True)
class _Row:
    name: str
    kind: EvaluationKind
    outcomes: PerQuestion
    choices: np.ndarray | None = None


def _chosen_row(name: str, kind: EvaluationKind, test: OutcomeMatrix, choices: np.ndarray) -> _Row:
    return _Row(name, kind, outcomes_of(test, choices, name), choices)


def _policy_row(fitted: FittedPolicy, test: OutcomeMatrix, name: str, kind: EvaluationKind, labels: bool) -> _Row:
    return _chosen_row(name, kind, test, fitted.choices(policy_inputs(test, labels)))


def _baseline_rows(splits: SplitOutcomes, context: FitContext, policies: Sequence[Policy]) -> list[_Row]:
    """Policies that are fitted to the training questions."""
    fitted = [policy.fitted(splits.train, context) for policy in policies]
    return [_policy_row(policy, splits.test, policy.name, policy.policy.kind, labels=True) for policy in fitted]


def _bounds(test: OutcomeMatrix, lambda_: float) -> list[_Row]:
    """What is no policy: any subset at random, and the oracle, an upper bound that is chosen on the test questions."""
    best = _chosen_row("oracle", "oracle", test, oracle_choices(test, lambda_))
    return [_Row("random", "random", random_outcomes(test)), best]


def _by_id(rows: Sequence[_Row], test: OutcomeMatrix) -> dict[str, tuple[int, ...]]:
    """What each row chose, if it did, in the order of the question ids."""
    order = sorted(range(len(test)), key=lambda row: test.questions[row].id)
    return {row.name: tuple(row.choices[order].tolist()) for row in rows if row.choices is not None}


def _compare(rows: list[_Row], test: OutcomeMatrix, settings: Settings) -> tuple[Comparison, ...]:
    evaluation = settings.evaluation
    all_scores = test.scores[:, FULL_SUBSET - 1]
    return tuple(
        Comparison(
            row.outcomes.evaluation(row.name, row.kind, settings.search.lambda_),
            paired_bootstrap(
                row.outcomes.scores - all_scores,
                test.episode_ids,
                evaluation.bootstrap_samples,
                evaluation.confidence,
                evaluation.bootstrap_seed,
            ),
        )
        for row in rows
    )
