"""What must hold of the artifacts. A failed check on data stops what depends on it; one on a result is there to be seen."""

from collections.abc import Callable, Sequence
from functools import partial

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.datasets import raw_trajectories
from mesa_pipeline.defs.evaluation import subset_sweep_scores, test_report
from mesa_pipeline.defs.partitions import BY_DATASET, BY_DATASET_AND_SEED
from mesa_pipeline.defs.resources import Partition, Pipeline, clear_failures
from mesa_pipeline.defs.search import optimized_policy
from mesa_pipeline.defs.structures import MEMORIES, structure_evidence
from mesa_pipeline.stages import inspection
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.structures import STRUCTURES

MAX_LINES = 50
on_datasets = partial(dg.asset_check, partitions_def=BY_DATASET, blocking=True)
on_seeds = partial(dg.asset_check, partitions_def=BY_DATASET_AND_SEED)


@on_datasets(asset=raw_trajectories)
def no_partial_episode(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """Every episode of the manifest can be read whole."""
    return _inspected(context, pipeline, inspection.partial_episodes)


@on_datasets(asset=raw_trajectories)
def no_repeated_question(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """No two questions have one id."""
    return _inspected(context, pipeline, inspection.repeated_questions)


def copies_check(memory: dg.AssetsDefinition, code: str) -> dg.AssetChecksDefinition:
    """The check of one structure's copies on a server."""

    @on_datasets(asset=memory, name="no_copy_lacking")
    def no_copy_lacking(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
        """The server that searches the memories, where the settings name one, holds all of them as they are."""
        return _inspected(context, pipeline, partial(inspection.lacking_copies, code=code))

    return no_copy_lacking


COPIES_CHECKS = [copies_check(memory, code) for memory, code in zip(MEMORIES, STRUCTURES, strict=True)]


@on_datasets(asset=structure_evidence)
def no_fruitless_structure(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """Every structure returned something for some question."""
    return _inspected(context, pipeline, inspection.fruitless_structures)


@on_datasets(asset=structure_evidence)
def no_answer_in_evidence(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """No reference answer stands in the evidence unless the trajectory says it."""
    return _inspected(context, pipeline, inspection.answers_in_evidence)


@on_datasets(asset=subset_sweep_scores)
def all_subsets_present(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """Every question has one outcome for each of the 31 subsets."""
    return _inspected(context, pipeline, inspection.incomplete_questions)


@on_datasets(asset=subset_sweep_scores)
def no_impossible_outcome(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """Every outcome is of a question and a subset there are, with a score from 0 to 1 or a reason why it has none."""
    return _inspected(context, pipeline, inspection.impossible_outcomes)


@on_datasets(asset=subset_sweep_scores)
def few_unscored(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """The reader and the judge failed to score no more of the outcomes than the settings allow (checks.max_unscored)."""
    stage = pipeline.stage(context)
    found, most = inspection.scored_outcomes(stage), stage.settings.checks.max_unscored
    return dg.AssetCheckResult(
        passed=found.unscored_share <= most,
        metadata={"outcomes": found.outcomes, "unscored": found.unscored, "share": found.unscored_share, "allowed": most},
    )


@on_seeds(asset=optimized_policy, blocking=True)
def no_answer_in_policy(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """Neither what a policy is shown nor what it learnt holds a reference answer."""
    return _inspected(context, pipeline, partial(inspection.answers_in_policy, seed=Partition.of(context).seed_drawn))


@on_seeds(asset=test_report)
def not_worse_than_all(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """The frozen policy is not significantly worse than reading all five structures."""
    versus_all = inspection.frozen_comparison(pipeline.stage(context), Partition.of(context).seed_drawn).versus_all
    return dg.AssetCheckResult(
        passed=not (versus_all.excludes_zero and versus_all.mean < 0),
        metadata={name: 100 * getattr(versus_all, name) for name in ("mean", "low", "high")},
        description=f"Score difference (x100) with its {versus_all.confidence:.0%} interval, paired by question.",
    )


def _inspected(
    context: dg.AssetCheckExecutionContext, pipeline: Pipeline, inspect: Callable[[StageContext], Sequence[str]]
) -> dg.AssetCheckResult:
    """Passed where an inspection finds nothing; else what it found."""
    with clear_failures(pipeline, context):
        problems = inspect(pipeline.stage(context))
    lines = [*problems[:MAX_LINES], *([f"... {len(problems):,} in all"] if len(problems) > MAX_LINES else [])]
    found = metadata.lines(lines)
    return dg.AssetCheckResult(passed=not problems, metadata={"problems": len(problems), **({"found": found} if lines else {})})
