"""What the assets work with. The only module under ``defs`` that reads settings and the environment."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeAlias

import dagster as dg
from pydantic import Field

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.config.loading import PARAMS_FILE
from mesa_pipeline.config.variables import PARAMS_VARIABLE, WORKSPACE_VARIABLE, data_variable
from mesa_pipeline.datasets import DATASETS, dataset_names
from mesa_pipeline.defs import metadata
from mesa_pipeline.defs.executors import executor_named
from mesa_pipeline.defs.faults import retry_after
from mesa_pipeline.defs.soundness import failed_inputs
from mesa_pipeline.errors import ConfigError, MesaError
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.tracking import Tracker, open_tracker
from mesa_pipeline.tracking.dvc import DvcRepository
from mesa_pipeline.types import Summary

PROFILE_VARIABLE = "MESA_PROFILE"
EXECUTOR_VARIABLE = "MESA_EXECUTOR"
DEFAULT_EXECUTOR = "in-process"
DATASET_DIMENSION = "dataset"
SEED_DIMENSION = "seed"
DEFAULT_WORKSPACE = "workspace"
SECONDS_BETWEEN_REPORTS = 10.0

StepContext: TypeAlias = dg.AssetExecutionContext | dg.AssetCheckExecutionContext


DATA_VARIABLES = {dataset: data_variable(dataset) for dataset in DATASETS}
"""Of the data sets that every installation has."""


def read_settings() -> Settings:
    """The settings as files and environment have them now."""
    params = os.environ.get(PARAMS_VARIABLE)
    return load_settings(Path(params) if params else None, profile=os.environ.get(PROFILE_VARIABLE) or None)


class Pipeline(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Gives each asset the core's own context for its partition.

    Attributes:
        workspace: Folder of all artifacts.
        data_paths: File or folder of each dataset that needs one.
        skip_invalid: Leave out bad rows instead of stopping.
    """

    workspace: str
    data_paths: dict[str, str] = Field(default_factory=dict)
    skip_invalid: bool = False

    def stage(self, context: StepContext) -> StageContext:
        """The core's context for the partition at hand; progress goes to the run's log."""
        dataset = Partition.of(context).dataset
        path = self.data_paths.get(dataset)
        progress = LoggedProgress(context.log)
        return StageContext(
            layout=Layout(Path(self.workspace), dataset),
            settings=read_settings(),
            data_path=Path(path) if path else None,
            skip_invalid=self.skip_invalid,
            progress=progress,
            watch_search=lambda told: progress(f"search, split seed {told.plan.seed}", told.iteration, told.plan.iterations),
        )

    def tracker(self, context: StepContext) -> Tracker:
        """The tracker of the settings; searches carry the id of the Dagster run."""
        stage = self.stage(context)
        return open_tracker(stage.settings.tracking, stage.layout, {"dagster.run_id": context.run.run_id})

    def repository(self, context: StepContext) -> DvcRepository | None:
        """The DVC repository that the workspace lies in, if it lies in one."""
        return DvcRepository.around(Path(self.workspace))

    def works_as(self, repository: DvcRepository, context: StepContext) -> bool:
        """Whether the stages work here with what DVC would run them with: the repository's own parameters and data."""
        stage = self.stage(context)
        try:
            is_as_recorded = stage.settings == load_settings(repository.root / PARAMS_FILE, environment={})
        except ConfigError:
            return False
        episodes = stage.layout.manifest.parent
        return is_as_recorded and not self.skip_invalid and repository.is_made_from(episodes, stage.data_path)

    def perform(self, context: StepContext, stage: Callable[[StageContext], Summary]) -> Summary:
        """Run a stage of the core.

        Raises:
            dg.Failure: Its inputs are bad, the stage could not do its work, or some of its items failed; says what to do.
            dg.RetryRequested: What kept it from its work may pass.
        """
        if isinstance(context, dg.AssetExecutionContext) and (bad := failed_inputs(context, Partition.of(context).dataset)):
            raise dg.Failure(f"not started: {', '.join(bad)} failed; mend that and materialise it again", allow_retries=False)
        with clear_failures(self, context):
            summary = stage(self.stage(context))
        if summary.failed:
            raise dg.Failure(
                f"{len(summary.failed)} failed, {summary.made} made, {summary.kept} kept; materialise again to retry those",
                metadata={"failed": metadata.lines(summary.failed)},
                allow_retries=False,
            )
        return summary


class LoggedProgress:
    """Progress as log lines: the first, the last, and one every few seconds in between."""

    def __init__(
        self, log: logging.Logger, every: float = SECONDS_BETWEEN_REPORTS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._every = every
        self._clock = clock
        self._started = self._reported = clock()

    def __call__(self, description: str, done: int, total: int) -> None:
        now = self._clock()
        if done == 0:
            self._started = now
        elif done < total and now - self._reported < self._every:
            return
        self._reported = now
        if total:
            self._log.info(f"{description}: {done:,} of {total:,}{self._pace(done, total, now - self._started)}")

    def _pace(self, done: int, total: int, seconds: float) -> str:
        if not done or seconds < 1:
            return ""
        rate = done / seconds
        return f" ({rate:,.1f}/s)" if done == total else f" ({rate:,.1f}/s, {(total - done) / rate:,.0f} s left)"


@dataclass(frozen=True)
class Partition:
    """A dataset, or a dataset with the split seed of a dataset-and-seed partition."""

    dataset: str
    seed: int | None

    @classmethod
    def of(cls, context: StepContext) -> Self:
        """The partition at hand."""
        execution = context.op_execution_context if isinstance(context, dg.AssetCheckExecutionContext) else context
        key = execution.partition_key
        if isinstance(key, dg.MultiPartitionKey):
            dimensions = key.keys_by_dimension
            return cls(dimensions[DATASET_DIMENSION], int(dimensions[SEED_DIMENSION]))
        return cls(key, None)

    @property
    def seed_drawn(self) -> int:
        """The seed of a partition that has one."""
        if self.seed is None:
            raise ValueError(f"partition {self.dataset!r} has no split seed")
        return self.seed


@contextmanager
def clear_failures(pipeline: Pipeline, context: StepContext) -> Iterator[None]:
    """Turn an error of ours, which names its remedy, into a failure shown without a stack trace of the framework.

    After one that may pass the step is tried again: the core goes on from what is stored, and what another process made
    meanwhile need not be made again.
    """
    try:
        yield
    except MesaError as error:
        if error.transient:
            retry = retry_after(error, context.run.run_id, context.retry_number, read_settings().run.retries)
            context.log.warning(f"{error} (attempt {context.retry_number + 1}; the next in {retry.seconds_to_wait:.0f} s)")
            raise retry from error
        names = dataset_names(read_settings().datasets)
        variables = ", ".join(data_variable(name) for name in names if name not in pipeline.data_paths)
        hint = f" Here --data is an environment variable of the code location: {variables}." if "--data" in str(error) else ""
        raise dg.Failure(f"{error}{hint}", allow_retries=False) from error


@dg.definitions
def resources() -> dg.Definitions:
    """Resources and executor from the environment."""
    variables = {dataset: data_variable(dataset) for dataset in dataset_names(read_settings().datasets)}
    paths = {dataset: os.environ[variable] for dataset, variable in variables.items() if os.environ.get(variable)}
    workspace = Path(os.environ.get(WORKSPACE_VARIABLE, DEFAULT_WORKSPACE)).absolute()
    return dg.Definitions(
        resources={"pipeline": Pipeline(workspace=str(workspace), data_paths=paths)},
        executor=executor_named(os.environ.get(EXECUTOR_VARIABLE, DEFAULT_EXECUTOR)),
    )
