"""Episodes, and how they are split."""

from collections.abc import Sequence
from functools import partial

import dagster as dg

from mesa_pipeline.datasets.splits import PARTS
from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.partitions import asset_by_dataset, asset_by_seed
from mesa_pipeline.defs.resources import Partition, Pipeline
from mesa_pipeline.defs.versions import Made, materialized
from mesa_pipeline.stages.completeness import are_split
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.split import read_split, split
from mesa_pipeline.stages.storage import EpisodeEntry, read_manifest


@asset_by_dataset(group_name="data")
def raw_trajectories(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """Trajectories with their questions, as the dataset has them; one artifact an episode."""
    summary = pipeline.perform(context, ingest)
    manifest = read_manifest(pipeline.stage(context).layout)
    domains: dict[str, list[EpisodeEntry]] = {}
    for entry in manifest.episodes:
        domains.setdefault(entry.domain, []).append(entry)
    rows = [_domain_row(domain, entries) for domain, entries in sorted(domains.items())]
    shown = {**metadata.of_summary(summary), "table_domains": metadata.rows_table(rows)}
    episodes = pipeline.stage(context).layout.manifest.parent
    return materialized(context, pipeline, Made([episodes], [episodes]), shown)


@asset_by_seed(deps=[raw_trajectories], group_name="data")
def split_partitions(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """Which episodes train, validate and test a policy, for one split seed."""
    seed = Partition.of(context).seed_drawn
    summary = pipeline.perform(context, partial(split, seed=seed))
    stage = pipeline.stage(context)
    drawn, manifest = read_split(stage, seed), read_manifest(stage.layout)
    rows = [_part_row(part, manifest.entries(getattr(drawn, part))) for part in PARTS]
    warnings = {"not_covered": metadata.lines(drawn.warnings)} if drawn.warnings else {}
    path = stage.layout.split(seed)
    shown = {**metadata.of_summary(summary), "table_parts": metadata.rows_table(rows), **warnings}
    return materialized(context, pipeline, Made([path], [path.parent], partial(are_split, stage)), shown)


def _part_row(part: str, entries: Sequence[EpisodeEntry]) -> metadata.Row:
    return {
        "part": part,
        "episodes": len(entries),
        "questions": sum(entry.question_count for entry in entries),
        "domains": len({entry.domain for entry in entries}),
        "task types": len({entry.task_type for entry in entries}),
        "question types": len({name for entry in entries for name in entry.qa_types}),
    }


def _domain_row(domain: str, entries: list[EpisodeEntry]) -> metadata.Row:
    return {
        "domain": domain,
        "episodes": len(entries),
        "questions": sum(entry.question_count for entry in entries),
        "steps": sum(entry.steps for entry in entries),
        "longest": max(entry.steps for entry in entries),
    }
