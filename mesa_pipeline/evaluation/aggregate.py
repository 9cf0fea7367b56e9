"""One set of figures out of several split seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.config import EvaluationSettings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.evaluate import Evaluation, EvaluationKind
from mesa_pipeline.evaluation.held_out import TestResult
from mesa_pipeline.evaluation.statistics import Interval, MeanStd, mean_and_sample_std, paired_bootstrap
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.subsets import FULL_SUBSET


@dataclass(frozen=True)
class RowSummary:
    """One row of the test over seeds: mean and sample standard deviation of each figure.

    Attributes:
        name: Name of the row.
        kind: Family of the policy.
        score: J.
        tokens: C.
        structures: Structures read.
        objective: J - lambda C.
        versus_all: Paired score difference to reading all five structures.
    """

    name: str
    kind: EvaluationKind
    score: MeanStd
    tokens: MeanStd
    structures: MeanStd
    objective: MeanStd
    versus_all: MeanStd


def over_seeds(results: Sequence[TestResult]) -> tuple[RowSummary, ...]:
    """Summaries of every row, in the order of the first result that has it.

    Args:
        results: One for each seed, all of one dataset.

    Raises:
        ArtifactError: The results are of several datasets, or two are of one seed.
    """
    _require_distinct_seeds(results)
    names = dict.fromkeys(row.evaluation.name for result in results for row in result.comparisons)
    return tuple(_summary(name, results) for name in names)


def pooled_versus_all(results: Sequence[TestResult], matrix: OutcomeMatrix, settings: EvaluationSettings) -> Interval:
    """Interval of the frozen policies' score difference to reading all five structures, over the test questions of all seeds.

    An episode is in the test part of several seeds. All its appearances form one cluster, so they are resampled together and
    their dependence is kept; five overlapping test parts do not pass for five independent ones. The interval speaks of these
    frozen policies on other episodes; it does not cover how much the policies themselves would vary with the split.

    Args:
        results: One for each seed, all of one dataset.
        matrix: Outcomes that hold every question tested.
        settings: Bootstrap settings.

    Raises:
        ArtifactError: The results do not belong together, or ``matrix`` lacks a question that was tested.
    """
    _require_distinct_seeds(results)
    rows = {question.id: row for row, question in enumerate(matrix.questions)}
    tested = [(question, mask) for result in results for question, mask in result.choices.items()]
    lacking = sum(question not in rows for question, _ in tested)
    if lacking:
        raise ArtifactError(f"{lacking} tested questions are not in the outcome table; run `mesa sweep` again")
    where = np.array([rows[question] for question, _ in tested], dtype=np.int64)
    masks = np.array([mask for _, mask in tested], dtype=np.int64)
    differences = matrix.scores[where, masks - 1] - matrix.scores[where, FULL_SUBSET - 1]
    return paired_bootstrap(
        differences,
        matrix.episode_ids[where],
        settings.bootstrap_samples,
        settings.confidence,
        settings.bootstrap_seed,
    )


def _summary(name: str, results: Sequence[TestResult]) -> RowSummary:
    rows = [row for result in results for row in result.comparisons if row.evaluation.name == name]
    evaluations: list[Evaluation] = [row.evaluation for row in rows]
    return RowSummary(
        name=name,
        kind=evaluations[0].kind,
        score=mean_and_sample_std([evaluation.score for evaluation in evaluations]),
        tokens=mean_and_sample_std([evaluation.tokens for evaluation in evaluations]),
        structures=mean_and_sample_std([evaluation.structures for evaluation in evaluations]),
        objective=mean_and_sample_std([evaluation.objective for evaluation in evaluations]),
        versus_all=mean_and_sample_std([row.versus_all.mean for row in rows]),
    )


def _require_distinct_seeds(results: Sequence[TestResult]) -> None:
    datasets = sorted({result.dataset for result in results})
    seeds = [result.seed for result in results]
    if len(datasets) != 1:
        raise ArtifactError(f"results over seeds must be of one dataset, got {', '.join(datasets) or 'none'}; run `mesa test`")
    if len(set(seeds)) != len(seeds):
        raise ArtifactError(f"each split seed counts once, got {seeds}")
