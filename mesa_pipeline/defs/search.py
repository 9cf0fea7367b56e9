"""The policy that search chose."""

from functools import partial

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.datasets import split_partitions
from mesa_pipeline.defs.partitions import asset_by_seed
from mesa_pipeline.defs.resources import Partition, Pipeline
from mesa_pipeline.defs.versions import Made, materialized
from mesa_pipeline.stages.completeness import are_optimized
from mesa_pipeline.stages.optimize import FROZEN_FOLDER, RESULT_FILE, optimize
from mesa_pipeline.stages.report_search import search_finding


@asset_by_seed(deps=["subset_sweep_scores", split_partitions], group_name="search")
def optimized_policy(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """The policy with the best score minus cost on validation, frozen; its candidates are in MLflow."""
    from mesa_pipeline.reports.search import policy_listing
    from mesa_pipeline.reports.search_figures import archive_figure, arms_figure, objective_figure
    from mesa_pipeline.reports.search_tables import candidates_table, lineage_table

    seed = Partition.of(context).seed_drawn
    tracker = pipeline.tracker(context)
    summary = pipeline.perform(context, partial(optimize, seed=seed, tracker=tracker))
    stage = pipeline.stage(context)
    found = search_finding(stage, seed)
    shown = {
        **metadata.plot(objective_figure(found)),
        **metadata.plot(archive_figure(found)),
        **metadata.plot(arms_figure(found)),
        "policy": metadata.listing(policy_listing(found)),
        "table_candidates": metadata.report_table(candidates_table(found)),
        "table_lineage": metadata.report_table(lineage_table(found)),
        **metadata.link("candidates_in_mlflow", tracker.page(stage.dataset)),
    }
    folder = stage.layout.policy(seed)
    made = Made([folder / RESULT_FILE, folder / FROZEN_FOLDER], [folder.parent], partial(are_optimized, stage))
    return materialized(context, pipeline, made, {**metadata.of_summary(summary), **shown})
