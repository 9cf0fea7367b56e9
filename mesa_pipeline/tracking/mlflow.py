"""Searches in MLflow: an experiment per dataset, a parent run per search, a child run per candidate.

Everything goes through ``MlflowClient``, so no active run is kept in the process, and through ``log_batch``, which is six times
as fast as single calls.
"""

import fcntl
import logging
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

# Read while mlflow is imported, and nowhere else to be set.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID, MLFLOW_RUN_NOTE

from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.tracking import SearchRun, TrackedCandidate, TrackedSearch

logging.getLogger("mlflow").setLevel(logging.WARNING)  # it announces each table it creates

KEY_TAG = "mesa.search_key"
SEED_TAG = "mesa.split_seed"
VALID_TAG = "mesa.valid"
CHAMPION_ALIAS = "champion"
POLICY_ARTIFACTS = "policy"
MAX_PARAM_CHARS = 6000
MAX_RUNS = 10_000
FINISHED = "FINISHED"


@dataclass(frozen=True)
class MlflowTracker:
    """Records searches in MLflow.

    Args:
        uri: A tracking server or database.
        artifacts: Folder for artifacts; ``None`` leaves the place to the server.
        tags: Put on every search.
    """

    uri: str
    artifacts: Path | None
    tags: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def search(self, search: TrackedSearch) -> Iterator[SearchRun]:
        with _reachable(self.uri):
            run = MlflowSearchRun(self._client, self._parent(search), search, self.uri)
        try:
            yield run
        except BaseException:
            self._client.set_terminated(run.id, "FAILED")
            raise
        self._client.set_terminated(run.id, FINISHED)

    def test(self, search: TrackedSearch, metrics: Mapping[str, float | None]) -> None:
        with _reachable(self.uri):
            parent = self._parent(search)
            new = {name: value for name, value in _known(metrics).items() if parent.data.metrics.get(name) != value}
            if new:
                self._client.log_batch(parent.info.run_id, metrics=_as_metrics(new))

    @cached_property
    def _client(self) -> MlflowClient:
        with _alone(self.uri):
            return MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)

    def _experiment(self, dataset: str) -> str:
        found = self._client.get_experiment_by_name(dataset)
        if found is not None:
            return str(found.experiment_id)
        location = (self.artifacts / dataset).as_uri() if self.artifacts else None
        return str(self._client.create_experiment(dataset, artifact_location=location))

    def _parent(self, search: TrackedSearch) -> Run:
        experiment = self._experiment(search.dataset)
        found = self._client.search_runs([experiment], f"tags.`{KEY_TAG}` = '{search.key}'", max_results=1)
        if found:
            return found[0]
        tags = {**self.tags, KEY_TAG: search.key, SEED_TAG: str(search.seed)}
        run = self._client.create_run(experiment, tags=tags, run_name=f"search-seed-{search.seed}")
        self._client.log_batch(run.info.run_id, params=_as_params({"seed": search.seed, **search.params}))
        return run


class MlflowSearchRun:
    """A parent run and the children it has so far."""

    def __init__(self, client: MlflowClient, parent: Run, search: TrackedSearch, uri: str) -> None:
        self._client = client
        self._parent = parent
        self._search = search
        self._uri = uri
        children = client.search_runs(
            [parent.info.experiment_id], f"tags.`{MLFLOW_PARENT_RUN_ID}` = '{self.id}'", max_results=MAX_RUNS
        )
        self._children = {child.info.run_name: child for child in children}

    @property
    def id(self) -> str:
        return str(self._parent.info.run_id)

    def candidate(self, candidate: TrackedCandidate) -> None:
        with _reachable(self._uri):
            run = self._children.get(candidate.name)
            if run is not None and run.info.status == FINISHED:
                return
            tags = {**candidate.tags, VALID_TAG: str(candidate.valid).lower()}
            if run is None:
                run = self._client.create_run(
                    self._parent.info.experiment_id,
                    tags={**tags, MLFLOW_PARENT_RUN_ID: self.id},
                    run_name=candidate.name,
                )
            run_id = run.info.run_id
            self._client.log_batch(run_id, metrics=_as_metrics(_known(candidate.metrics)), params=_as_params(candidate.tags))
            self._client.log_text(run_id, candidate.source, candidate.source_file)
            self._client.set_terminated(run_id, FINISHED)
            self._children[candidate.name] = self._client.get_run(run_id)

    def freeze(self, directory: Path, metrics: Mapping[str, float | None], *, champion: bool) -> None:
        with _reachable(self._uri):
            note = f"Frozen policy of split seed {self._search.seed}; its files are under artifacts, {POLICY_ARTIFACTS}/."
            self._client.log_batch(self.id, metrics=_as_metrics(_known(metrics)), tags=[RunTag(MLFLOW_RUN_NOTE, note)])
            self._client.log_artifacts(self.id, str(directory), POLICY_ARTIFACTS)
            version = self._model_version()
            name = self._model_name
            self._client.set_registered_model_alias(name, f"seed-{self._search.seed}", version)
            if champion:
                self._client.set_registered_model_alias(name, CHAMPION_ALIAS, version)

    @property
    def _model_name(self) -> str:
        return f"policy-{self._search.dataset}"

    def _model_version(self) -> str:
        """Version of the search's frozen policy in the registry; registered once."""
        known = self._client.search_model_versions(f"run_id = '{self.id}'")
        if known:
            return str(known[0].version)
        if not self._client.search_registered_models(f"name = '{self._model_name}'"):
            self._client.create_registered_model(self._model_name)
        source = f"{self._parent.info.artifact_uri}/{POLICY_ARTIFACTS}"
        tags = {SEED_TAG: str(self._search.seed), KEY_TAG: self._search.key}
        return str(self._client.create_model_version(self._model_name, source, self.id, tags=tags).version)


@contextmanager
def _reachable(uri: str) -> Iterator[None]:
    try:
        yield
    except (MlflowException, OSError) as error:
        place = uri.rpartition("@")[2]  # what stands before it may be a password
        raise MissingDependency(
            f"MLflow at {place} cannot be used ({type(error).__name__}); start it, correct tracking.uri, "
            "or go on without it: --set tracking.enabled=false"
        ) from error


@contextmanager
def _alone(uri: str) -> Iterator[None]:
    """Let one process at a time create the tables of a new SQLite file."""
    if not uri.startswith("sqlite:///"):
        yield
        return
    path = Path(uri.removeprefix("sqlite:///"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _known(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in metrics.items() if value is not None and math.isfinite(value)}


def _as_metrics(metrics: Mapping[str, float]) -> list[Metric]:
    now = int(time.time() * 1000)
    return [Metric(name, value, now, 0) for name, value in metrics.items()]


def _as_params(params: Mapping[str, Any]) -> list[Param]:
    return [Param(name, str(value)[:MAX_PARAM_CHARS]) for name, value in params.items()]
