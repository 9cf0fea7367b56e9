"""The same search with some settings changed."""

from functools import partial

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.datasets import split_partitions
from mesa_pipeline.defs.partitions import asset_by_seed
from mesa_pipeline.defs.resources import Partition, Pipeline
from mesa_pipeline.defs.versions import Made, materialized
from mesa_pipeline.stages.ablate import ablate, ablated


@asset_by_seed(deps=["subset_sweep_scores", split_partitions, "optimized_policy"], group_name="search")
def policy_ablations(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """Policies searched without priors, without UCB, ... and tested; the report shows them beside the optimized one."""
    seed, tracker = Partition.of(context).seed_drawn, pipeline.tracker(context)
    summaries = [
        pipeline.perform(context, partial(ablate, ablation=ablation, seed=seed, tracker=tracker))
        for ablation in pipeline.stage(context).settings.ablations
    ]
    rows = [{"ablation": summary.stage, **summary.facts} for summary in summaries]
    stage = pipeline.stage(context)
    tests = [ablated(stage, ablation).layout.test(seed) for ablation in stage.settings.ablations]
    return materialized(context, pipeline, Made(tests), {"table_ablations": metadata.rows_table(rows)})
