"""The report that compares everything."""

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.evaluation import test_report
from mesa_pipeline.defs.partitions import asset_by_dataset
from mesa_pipeline.defs.resources import Pipeline
from mesa_pipeline.defs.schedules import REPORTED
from mesa_pipeline.defs.versions import Made, materialized
from mesa_pipeline.stages.report import gather, report


@asset_by_dataset(deps=[test_report], group_name="reports", freshness_policy=REPORTED)
def comparison_report(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """The dataset's report over all split seeds: headline, the 31 subsets, policies, cost, coverage."""
    from mesa_pipeline.reports.contents import make_report

    summary = pipeline.perform(context, report)
    stage = pipeline.stage(context)
    document = make_report(gather(stage))
    drawings = [metadata.plot(figure) for figure in document.figures]
    shown = {name: value for drawing in drawings for name, value in drawing.items()}
    page = dg.MetadataValue.path(stage.layout.report / "report.html")
    shown = {**metadata.of_summary(summary), "page": page, **shown, **metadata.of_figures(document.metrics)}
    return materialized(context, pipeline, Made([stage.layout.report], [stage.layout.report]), shown)
