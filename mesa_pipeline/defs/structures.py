"""The five memories, one asset each, and what they return for the questions."""

from functools import partial
from typing import Any

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.datasets import raw_trajectories
from mesa_pipeline.defs.partitions import asset_by_dataset
from mesa_pipeline.defs.resources import Pipeline
from mesa_pipeline.defs.versions import Made, materialized
from mesa_pipeline.stages.build import build, own_build_costs
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.structures import STRUCTURES
from mesa_pipeline.structures.base import MemoryStructure
from mesa_pipeline.subsets import STRUCTURE_NAMES


def memory_asset(structure: type[MemoryStructure[Any]]) -> dg.AssetsDefinition:
    """The asset of one structure's memories."""

    @asset_by_dataset(
        name=f"{structure.name}_memory",
        deps=[raw_trajectories],
        group_name="structures",
        description=f"Structure {structure.code}: the {structure.name} memory of every episode.",
    )
    def memory(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
        from mesa_pipeline.reports.figures import build_figure

        summary = pipeline.perform(context, partial(build, code=structure.code))
        seconds = [cost.seconds for cost in own_build_costs(pipeline.stage(context), structure.code).values()]
        shown = metadata.plot(build_figure({structure.code: seconds}))
        folder = pipeline.stage(context).layout.memory(structure.name, "any").parent
        return materialized(context, pipeline, Made([folder], [folder]), {**metadata.of_summary(summary), **shown})

    return memory


MEMORIES = [memory_asset(structure) for structure in STRUCTURES.values()]


@asset_by_dataset(deps=MEMORIES, group_name="structures")
def structure_evidence(context: dg.AssetExecutionContext, pipeline: Pipeline) -> dg.MaterializeResult[None]:
    """What each structure returns for each question, retrieved once whatever subsets will read it."""
    summaries = {code: pipeline.perform(context, partial(retrieve, code=code)) for code in STRUCTURES}
    rows = [
        {
            "structure": STRUCTURES[code].name,
            "episodes retrieved": summary.made,
            "episodes kept": summary.kept,
            "seconds": summary.seconds,
        }
        for code, summary in summaries.items()
    ]
    seconds = round(sum(summary.seconds for summary in summaries.values()), 2)
    layout = pipeline.stage(context).layout
    folders = [place(name, "any").parent for place in (layout.evidence, layout.preview) for name in STRUCTURE_NAMES.values()]
    shown = {"seconds": dg.MetadataValue.float(seconds), "table_structures": metadata.rows_table(rows)}
    return materialized(context, pipeline, Made(folders, folders), shown)
