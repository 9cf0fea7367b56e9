"""Who answers, night after night: the challenger that was searched for, the champion, and whether it got worse."""

from functools import partial

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.partitions import BY_DATASET, asset_by_dataset
from mesa_pipeline.defs.resources import Pipeline
from mesa_pipeline.defs.schedules import REPORTED
from mesa_pipeline.defs.versions import Made, materialized
from mesa_pipeline.stages.champion import challenge, re_evaluate
from mesa_pipeline.stages.night_page import PAGE, read_history
from mesa_pipeline.stages.reigns import read_champion
from mesa_pipeline.stages.tonight import challenger_folder


@asset_by_dataset(deps=["subset_sweep_scores"], group_name="champion")
def challenger_policy(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """The policy that a search finds on a split which grows with the data: no episode held out before is ever trained on."""
    summary = pipeline.perform(context, partial(challenge, tracker=pipeline.tracker(context)))
    made = Made([challenger_folder(pipeline.stage(context))])
    return materialized(context, pipeline, made, metadata.of_summary(summary))


@asset_by_dataset(deps=[challenger_policy], group_name="champion", freshness_policy=REPORTED)
def champion_policy(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """The policy that answers: the challenger takes its place once it is shown to be better where neither was made."""
    from mesa_pipeline.reports.champion import health_table, nights_table, standings_table
    from mesa_pipeline.reports.champion_figure import champion_figure

    summary = pipeline.perform(context, partial(re_evaluate, tracker=pipeline.tracker(context)))
    layout = pipeline.stage(context).layout
    nights = read_history(layout).nights
    last = nights[-1]
    shown = {
        **metadata.plot(champion_figure(nights)),
        "table_standings": metadata.report_table(standings_table(last)),
        **({"table_health": metadata.report_table(health_table(last.health))} if last.health else {}),
        "table_nights": metadata.report_table(nights_table(nights)),
        "report": dg.MetadataValue.path(layout.champion / PAGE),
        **metadata.of_figures(last.metrics),
    }
    champion = read_champion(layout)
    made = Made([champion.folder if champion else layout.champion])
    return materialized(context, pipeline, made, {**metadata.of_summary(summary), **shown})


@dg.asset_check(asset=champion_policy, partitions_def=BY_DATASET)
def champion_not_worse(context: dg.AssetCheckExecutionContext, pipeline: Pipeline) -> dg.AssetCheckResult:
    """The champion is not significantly worse than when it was crowned, nor than reading all five structures."""
    layout = pipeline.stage(context).layout
    last = read_history(layout).nights[-1]
    replaced = last.contest.is_crowned
    return dg.AssetCheckResult(
        passed=not last.worse,
        severity=dg.AssetCheckSeverity.WARN if replaced else dg.AssetCheckSeverity.ERROR,
        description=last.verdict + (" Another policy reigns now." if last.worse and replaced else ""),
        metadata={**last.metrics, "report": dg.MetadataValue.path(layout.champion / PAGE)},
    )
