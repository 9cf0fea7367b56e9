"""The policies of the held-out tests side by side, each over all split seeds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.evaluation.evaluate import EvaluationKind
from mesa_pipeline.evaluation.held_out import Comparison, TestResult
from mesa_pipeline.evaluation.statistics import MeanStd, mean_and_sample_std

KIND_ORDER: tuple[EvaluationKind, ...] = (
    *("frozen", "all", "single", "fixed", "lookup", "route", "executable"),
    *("zero_shot", "random", "oracle"),
)


@dataclass(frozen=True)
class Standing:
    """One policy over all seeds it was tested under.

    Attributes:
        name: The policy's name.
        kind: What sort of policy it is.
        seeds: Number of split seeds.
        questions: Test questions, summed over seeds.
        unscored: Those of them without a score, summed over seeds.
        score: Score in [0, 1].
        tokens: Evidence tokens of a question.
        structures: Structures read for a question.
        difference: Paired score difference to reading all five structures.
        low: Lower end of its interval, averaged over seeds: no shorter than what the mean over seeds deserves.
        high: Upper end; both are NaN where a test held a single episode, from which no spread can be learnt.
        confidence: Confidence of the interval.
    """

    name: str
    kind: EvaluationKind
    seeds: int
    questions: int
    unscored: int
    score: MeanStd
    tokens: MeanStd
    structures: MeanStd
    difference: MeanStd
    low: float
    high: float
    confidence: float


def standings(tests: Sequence[TestResult]) -> tuple[Standing, ...]:
    """Every policy of the tests, by kind and then in order of first appearance."""
    found: dict[tuple[EvaluationKind, str], list[Comparison]] = {}
    for test in sorted(tests, key=lambda test: test.seed):
        for comparison in test.comparisons:
            found.setdefault((comparison.evaluation.kind, comparison.evaluation.name), []).append(comparison)
    by_kind = sorted(found, key=lambda key: KIND_ORDER.index(key[0]))
    return tuple(_standing(key[1], key[0], found[key]) for key in by_kind)


def first_of_kind(found: Iterable[Standing], kind: EvaluationKind) -> Standing | None:
    """The first standing of a kind, if there is one."""
    return next((standing for standing in found if standing.kind == kind), None)


def _standing(name: str, kind: EvaluationKind, comparisons: Sequence[Comparison]) -> Standing:
    evaluations = [comparison.evaluation for comparison in comparisons]
    intervals = [comparison.versus_all for comparison in comparisons]
    learnt = all(interval.clusters > 1 for interval in intervals)
    return Standing(
        name=name,
        kind=kind,
        seeds=len(comparisons),
        questions=sum(evaluation.n for evaluation in evaluations),
        unscored=sum(evaluation.unscored for evaluation in evaluations),
        score=mean_and_sample_std([evaluation.score for evaluation in evaluations]),
        tokens=mean_and_sample_std([evaluation.tokens for evaluation in evaluations]),
        structures=mean_and_sample_std([evaluation.structures for evaluation in evaluations]),
        difference=mean_and_sample_std([interval.mean for interval in intervals]),
        low=float(np.mean([interval.low for interval in intervals])) if learnt else np.nan,
        high=float(np.mean([interval.high for interval in intervals])) if learnt else np.nan,
        confidence=intervals[0].confidence,
    )
