"""The systems MESA is compared with, one asset each, and the paper's tables and figures of all."""

from functools import partial
from typing import Any

import dagster as dg

from mesa_pipeline.baselines import Baseline
from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.datasets import raw_trajectories
from mesa_pipeline.defs.evaluation import test_report
from mesa_pipeline.defs.partitions import asset_by_dataset
from mesa_pipeline.defs.resources import Pipeline, read_settings
from mesa_pipeline.defs.schedules import NIGHTLY_OF_THOSE_THERE
from mesa_pipeline.defs.versions import Made, materialized
from mesa_pipeline.stages.baseline_report import baseline_report
from mesa_pipeline.stages.baselines import run_baseline
from mesa_pipeline.stages.system_summary import system_summary
from mesa_pipeline.stages.systems import known_baseline

GROUP = "baselines"


def baseline_asset(baseline: type[Baseline[Any]]) -> dg.AssetsDefinition:
    """The asset of one system's answers."""

    @asset_by_dataset(
        name=f"{baseline.code}_answers",
        deps=[raw_trajectories],
        group_name=GROUP,
        description=f"{baseline.title} ({baseline.provenance.source}): its answer to every question, scored, and what it took.",
    )
    def answers(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
        summary = pipeline.perform(context, partial(run_baseline, code=baseline.code))
        stage = pipeline.stage(context)
        found = system_summary(stage, baseline.code)
        figures = metadata.of_figures(found.figures)
        shown = {**metadata.of_summary(summary), **figures, "table_cost": metadata.rows_table(found.rows)}
        folder = stage.layout.answers(baseline.code, "any").parent
        return materialized(context, pipeline, Made([folder]), shown)

    return answers


ANSWERS = [baseline_asset(known_baseline(code)) for code in read_settings().baselines.assets]
"""Of the systems that the settings can run: one that cannot would keep the whole graph from being made."""


@asset_by_dataset(
    name="baseline_report", deps=[*ANSWERS, test_report], group_name=GROUP, automation_condition=NIGHTLY_OF_THOSE_THERE
)
def compared_report(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """MESA beside the systems that were run: the paper's tables and figures, with its own figures in columns of their own."""
    from mesa_pipeline.reports.compared import PAGE, REPORTS
    from mesa_pipeline.reports.document import Figure
    from mesa_pipeline.stages.baseline_report import compared_inputs

    summary = pipeline.perform(context, baseline_report)
    stage = pipeline.stage(context)
    inputs = compared_inputs(stage)
    shown: metadata.Metadata = {"page": dg.MetadataValue.path(stage.layout.comparison / PAGE)}
    for item in (made for report in REPORTS.values() for made in report.make(inputs)):
        shown |= metadata.plot(item) if isinstance(item, Figure) else {item.name: metadata.report_table(item)}
    return materialized(context, pipeline, Made([stage.layout.comparison]), {**metadata.of_summary(summary), **shown})
