"""All that was tested in one table over the split seeds: baselines, ablations, the frozen policy (paper, Tables 3 and 9)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.config import EvaluationSettings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.aggregate import RowSummary, over_seeds
from mesa_pipeline.evaluation.evaluate import random_outcomes
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, TestResult
from mesa_pipeline.evaluation.statistics import Interval, paired_bootstrap
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.subsets import FULL_SUBSET

RANDOM_ROW = "random"


@dataclass(frozen=True)
class Rung:
    """One row of the ladder.

    Attributes:
        name: Of the policy, or of the ablation whose policy it is.
        ablation: Whether it is the policy of an ablation.
        summary: Mean and sample standard deviation over the seeds it was tested on.
        versus_all: Score difference to reading all five structures, paired by question over the test questions of all seeds;
            ``None`` where a test was made before single choices were kept.
        versus_frozen: Score difference to the frozen policy of the same seed, paired likewise; ``None`` for that policy too.
    """

    name: str
    ablation: bool
    summary: RowSummary
    versus_all: Interval | None
    versus_frozen: Interval | None


def ladder(
    results: Sequence[TestResult],
    ablations: Mapping[str, Sequence[TestResult]],
    matrix: OutcomeMatrix,
    settings: EvaluationSettings,
) -> tuple[Rung, ...]:
    """Every row of the tests in order, then the frozen policy of each ablation.

    Each interval resamples episodes, all appearances of an episode together as in ``pooled_versus_all``. An ablation is
    compared on the seeds that it shares with the results.

    Args:
        results: One for each seed, all of one dataset.
        ablations: The tests of each ablation by its name; one without a seed of ``results`` is left out.
        matrix: Outcomes that hold every question tested.
        settings: Bootstrap settings.

    Raises:
        ArtifactError: The results do not belong together, or ``matrix`` lacks a question that was tested.
    """
    paired = _Paired(matrix, settings, {result.seed: result for result in results})
    rows = [_Policy(summary.name, False, summary.name, summary, list(results)) for summary in over_seeds(results)]
    for name, tests in ablations.items():
        shared = [test for test in tests if test.seed in paired.frozen]
        if shared:
            rows.append(_Policy(name, True, FROZEN_ROW, over_seeds(shared)[0], shared))
    return tuple(paired.rung(row) for row in rows)


@dataclass(frozen=True)
class _Policy:
    name: str
    ablation: bool
    row: str
    summary: RowSummary
    results: list[TestResult]


class _Paired:
    """Per-question scores of any row of any test, in the order of the question ids."""

    def __init__(self, matrix: OutcomeMatrix, settings: EvaluationSettings, frozen: Mapping[int, TestResult]) -> None:
        self.frozen = frozen
        self._settings = settings
        self._matrix = matrix
        self._rows = {question.id: row for row, question in enumerate(matrix.questions)}
        self._random = random_outcomes(matrix).scores if len(matrix) else np.empty(0)

    def rung(self, policy: _Policy) -> Rung:
        results = policy.results
        if not all(self._has(result, policy.row) for result in results):
            return Rung(policy.name, policy.ablation, policy.summary, None, None)
        scores = self._over(results, policy.row)
        everything = np.concatenate([self._matrix.scores[self._where(result), FULL_SUBSET - 1] for result in results])
        is_frozen = policy.row == FROZEN_ROW and not policy.ablation
        frozen = None if is_frozen else self._over([self.frozen[result.seed] for result in results], FROZEN_ROW)
        clusters = self._matrix.episode_ids[np.concatenate([self._where(result) for result in results])]
        return Rung(
            name=policy.name,
            ablation=policy.ablation,
            summary=policy.summary,
            versus_all=self._interval(scores - everything, clusters),
            versus_frozen=None if frozen is None else self._interval(scores - frozen, clusters),
        )

    def _over(self, results: Sequence[TestResult], row: str) -> np.ndarray:
        return np.concatenate([self._scores(result, row) for result in results])

    def _scores(self, result: TestResult, row: str) -> np.ndarray:
        where = self._where(result)
        chosen = [result.choices[id] for id in sorted(result.choices)] if row == FROZEN_ROW else result.others.get(row, ())
        masks = np.array(chosen, dtype=np.int64)
        scores: np.ndarray = self._random[where] if row == RANDOM_ROW else self._matrix.scores[where, masks - 1]
        return scores

    def _where(self, result: TestResult) -> np.ndarray:
        lacking = sum(id not in self._rows for id in result.choices)
        if lacking:
            raise ArtifactError(f"{lacking} tested questions are not in the outcome table; run `mesa sweep` again")
        return np.array([self._rows[id] for id in sorted(result.choices)], dtype=np.int64)

    def _has(self, result: TestResult, row: str) -> bool:
        return row in (FROZEN_ROW, RANDOM_ROW) or row in result.others

    def _interval(self, differences: np.ndarray, clusters: np.ndarray) -> Interval:
        settings = self._settings
        return paired_bootstrap(differences, clusters, settings.bootstrap_samples, settings.confidence, settings.bootstrap_seed)
