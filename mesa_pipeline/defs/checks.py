"""What must hold of the artifacts. A failed check on data stops what depends on it; one on a result is there to be seen."""

from collections.abc import Sequence
from functools import partial

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.datasets import raw_trajectories
from mesa_pipeline.defs.evaluation import subset_sweep_scores, test_report
from mesa_pipeline.defs.partitions import BY_DATASET, BY_DATASET_AND_SEED
from mesa_pipeline.defs.resources import Partition, Pipeline
from mesa_pipeline.defs.search import optimized_policy
from mesa_pipeline.defs.structures import structure_evidence
from mesa_pipeline.stages import inspection

MAX_LINES = 50
on_datasets = partial(dg.asset_check, partitions_def=BY_DATASET, blocking=True)
on_seeds = partial(dg.asset_check, partitions_def=BY_DATASET_AND_SEED)


@on_datasets(asset=raw_trajectories)
def no_partial_episode(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """Every episode of the manifest can be read whole."""
    return _nothing_found(inspection.partial_episodes(pipeline.stage(context)))


@on_datasets(asset=structure_evidence)
def no_answer_in_evidence(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """No reference answer stands in the evidence unless the trajectory says it."""
    return _nothing_found(inspection.answers_in_evidence(pipeline.stage(context)))


@on_datasets(asset=subset_sweep_scores)
def all_subsets_present(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """Every question has one outcome for each of the 31 subsets."""
    return _nothing_found(inspection.incomplete_questions(pipeline.stage(context)))


@on_seeds(asset=optimized_policy, blocking=True)
def no_answer_in_policy(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """Neither what a policy is shown nor what it learnt holds a reference answer."""
    return _nothing_found(inspection.answers_in_policy(pipeline.stage(context), Partition.of(context).seed_drawn))


@on_seeds(asset=test_report)
def not_worse_than_all(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """The frozen policy is not significantly worse than reading all five structures."""
    versus_all = inspection.frozen_comparison(pipeline.stage(context), Partition.of(context).seed_drawn).versus_all
    return dg.AssetCheckResult(
        passed=not (versus_all.excludes_zero and versus_all.mean < 0),
        metadata={name: 100 * getattr(versus_all, name) for name in ("mean", "low", "high")},
        description=f"Score difference (x100) with its {versus_all.confidence:.0%} interval, paired by question.",
    )


def _nothing_found(problems: Sequence[str]) -> dg.AssetCheckResult:
    lines = [*problems[:MAX_LINES], *([f"... {len(problems):,} in all"] if len(problems) > MAX_LINES else [])]
    found = metadata.lines(lines)
    return dg.AssetCheckResult(passed=not problems, metadata={"problems": len(problems), **({"found": found} if lines else {})})
