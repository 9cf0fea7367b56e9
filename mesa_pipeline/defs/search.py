"""The policy that search chose."""

from functools import partial

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.datasets import split_partitions
from mesa_pipeline.defs.partitions import asset_by_seed
from mesa_pipeline.defs.resources import Partition, Pipeline
from mesa_pipeline.search.records import ArchiveEntry
from mesa_pipeline.search.result import title
from mesa_pipeline.stages.optimize import optimize, read_archive


@asset_by_seed(deps=["subset_sweep_scores", split_partitions], group_name="search")
def optimized_policy(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """The policy with the best score minus cost on validation, frozen; its candidates are in MLflow."""
    seed = Partition.of(context).seed_drawn
    summary = pipeline.perform(context, partial(optimize, seed=seed, tracker=pipeline.tracker(context)))
    entries = read_archive(pipeline.stage(context), seed).entries
    rows = [_candidate_row(entry) for entry in sorted(entries, key=lambda entry: -entry.validation.objective)]
    return dg.MaterializeResult(metadata={**metadata.of_summary(summary), "table_candidates": metadata.rows_table(rows)})


def _candidate_row(entry: ArchiveEntry) -> metadata.Row:
    return {
        "policy": title(entry),
        "hypothesis": entry.hypothesis,
        "J (x100)": 100 * entry.validation.score,
        "C (tokens)": round(entry.validation.tokens),
        "J - lambda C (x100)": 100 * entry.validation.objective,
        "structures": entry.validation.structures,
    }
