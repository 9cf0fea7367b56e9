"""The one test of a frozen policy on questions nothing was fitted to."""

from collections.abc import Mapping
from dataclasses import dataclass

from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.evaluation.statistics import Interval

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


@dataclass(frozen=True)
class TestResult:
    """Outcome of the one test.

    Attributes:
        dataset: Name of the dataset.
        seed: Split seed.
        frozen: Name of the frozen policy.
        comparisons: Rows: the frozen policy (``FROZEN_ROW``), the same without benchmark labels (``LABEL_FREE_ROW``), then every
            baseline, random and the oracle.
        choices: Mask the frozen policy chose, with labels, by question id.
        validation: The frozen policy on validation, on which it was chosen.
        receipt: What was tested on what, and when.
    """

    dataset: str
    seed: int
    frozen: str
    comparisons: tuple[Comparison, ...]
    choices: Mapping[str, int]
    validation: Evaluation
    receipt: Receipt

    @property
    def inflation(self) -> float:
        """Validation score minus test score of the frozen policy: the winner's curse of having been chosen."""
        return self.validation.score - self.row(FROZEN_ROW).evaluation.score

    def row(self, name: str) -> Comparison:
        """The comparison of that name; the frozen policy's rows have names of their own."""
        return next(comparison for comparison in self.comparisons if comparison.evaluation.name == name)
