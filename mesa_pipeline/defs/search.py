"""The policy that search chose."""

from functools import partial

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.datasets import split_partitions
from mesa_pipeline.defs.partitions import asset_by_seed
from mesa_pipeline.defs.resources import Partition, Pipeline
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.stages.optimize import optimize, read_candidates


@asset_by_seed(deps=["subset_sweep_scores", split_partitions], group_name="search")
def optimized_policy(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """The policy with the best score minus cost on validation, frozen; its candidates are in MLflow."""
    seed = Partition.of(context).seed_drawn
    summary = pipeline.perform(context, partial(optimize, seed=seed, tracker=pipeline.tracker(context)))
    candidates = sorted(read_candidates(pipeline.stage(context), seed), key=lambda found: -found.objective)
    rows = [_candidate_row(candidate) for candidate in candidates]
    return dg.MaterializeResult(metadata={**metadata.of_summary(summary), "table_candidates": metadata.rows_table(rows)})


def _candidate_row(candidate: Evaluation) -> metadata.Row:
    return {
        "policy": candidate.name,
        "kind": candidate.kind,
        "J (x100)": 100 * candidate.score,
        "C (tokens)": round(candidate.tokens),
        "J - lambda C (x100)": 100 * candidate.objective,
        "structures": candidate.structures,
    }
