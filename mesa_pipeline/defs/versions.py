"""The version of what an asset made, and DVC's record of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from mesa_pipeline.artifacts import content_version
from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.resources import Pipeline
from mesa_pipeline.errors import WorkFailed
from mesa_pipeline.tracking.dvc import DvcRepository


@dataclass(frozen=True)
class Made:
    """Artifacts of one partition of an asset.

    Attributes:
        paths: Files and folders whose content is the asset's data version.
        tracked: Folders that DVC may track, each the whole output of a stage; those of an asset with seeds hold every seed's.
        is_whole: Whether they hold all that their stages make with the settings as they are.
    """

    paths: Sequence[Path]
    tracked: Sequence[Path] = ()
    is_whole: Callable[[], bool] = lambda: True


def materialized(
    context: dg.AssetExecutionContext, pipeline: Pipeline, made: Made, shown: metadata.Metadata
) -> dg.MaterializeResult[None]:
    """What an asset returns: its data version, by which those that depend on it are known to be out of step or not."""
    repository = pipeline.repository(context)
    recorded = _recorded(context, pipeline, repository, made) if repository else {}
    return dg.MaterializeResult(data_version=dg.DataVersion(content_version(*made.paths)), metadata={**shown, **recorded})


def _recorded(
    context: dg.AssetExecutionContext, pipeline: Pipeline, repository: DvcRepository, made: Made
) -> metadata.Metadata:
    """Hashes that DVC has of the artifacts as they are, after it was told of what changed."""
    try:
        if pipeline.works_as(repository, context) and made.is_whole():
            repository.record(made.tracked)
    except WorkFailed as error:
        context.log.warning(f"{error}; `dvc repro` records it")
    hashes = {f"dvc_{path.name}": repository.recorded(path) for path in made.tracked}
    return {name: dg.MetadataValue.text(md5) for name, md5 in hashes.items() if md5}
