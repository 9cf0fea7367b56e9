"""What every subset is worth, and what the frozen policy is worth on held-out episodes."""

from functools import partial

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.partitions import asset_by_dataset, asset_by_seed
from mesa_pipeline.defs.resources import Partition, Pipeline
from mesa_pipeline.defs.search import optimized_policy
from mesa_pipeline.defs.structures import structure_evidence
from mesa_pipeline.defs.versions import Made, materialized
from mesa_pipeline.stages.completeness import are_tested
from mesa_pipeline.stages.report import gather
from mesa_pipeline.stages.sweep import sweep
from mesa_pipeline.stages.test import read_test, test


@asset_by_dataset(deps=[structure_evidence], group_name="evaluation")
def subset_sweep_scores(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """The outcome table: score and evidence tokens of all 31 subsets for every question."""
    from mesa_pipeline.reports.cost_figure import cost_figure
    from mesa_pipeline.reports.findings import subset_findings
    from mesa_pipeline.reports.tables import subsets_table

    summary = pipeline.perform(context, sweep)
    matrix = gather(pipeline.stage(context)).matrix
    findings = subset_findings(matrix)
    shown = metadata.plot(cost_figure(findings, None, "all swept questions"))
    table = metadata.report_table(subsets_table(findings, len(matrix)))
    folder = pipeline.stage(context).layout.outcomes("any").parent
    shown |= {**metadata.of_summary(summary), "table_subsets": table}
    return materialized(context, pipeline, Made([folder], [folder]), shown)


@asset_by_seed(deps=[optimized_policy], group_name="reports")
def test_report(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """The frozen policy on held-out episodes, once, with every baseline beside it."""
    from mesa_pipeline.reports.figures import choices_figure, policies_figure
    from mesa_pipeline.reports.standings import standings
    from mesa_pipeline.reports.tables import policies_table

    seed = Partition.of(context).seed_drawn
    summary = pipeline.perform(context, partial(test, seed=seed, tracker=pipeline.tracker(context)))
    result = read_test(pipeline.stage(context), seed)
    found = standings([result])
    shown = metadata.plot(policies_figure(found)) | metadata.plot(choices_figure(list(result.choices.values())))
    table = metadata.report_table(policies_table(found))
    stage = pipeline.stage(context)
    path = stage.layout.test(seed)
    shown |= {**metadata.of_summary(summary), "table_policies": table}
    return materialized(context, pipeline, Made([path], [path.parent], partial(are_tested, stage)), shown)
