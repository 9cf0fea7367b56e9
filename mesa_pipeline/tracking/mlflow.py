"""Searches in MLflow: an experiment per dataset, a parent run per search, a child run per candidate.

Everything goes through ``MlflowClient``, so no active run is kept in the process. Every call is a transaction, so a candidate
takes as few as there can be, a search's own figures are kept back for a few seconds and written together, and a new SQLite
file gets a write-ahead log, which makes each of them three times as fast (docs/decisions/0083-searches-in-mlflow.md).
"""

import fcntl
import logging
import math
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

# Read while mlflow is imported, and nowhere else to be set.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
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
MAX_METRICS_PER_CALL = 1000
KEPT_BACK_SECONDS = 5.0
FINISHED, FAILED = "FINISHED", "FAILED"
STEP_METRIC = "iteration"
SQLITE_PREFIX = "sqlite:///"


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
            run.close(FAILED)
            raise
        with _reachable(self.uri):
            run.close(FINISHED)

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
        self._begun = {child.info.run_name: child for child in children}
        self._done = {name for name, child in self._begun.items() if child.info.status in (FINISHED, FAILED)}
        self._last_step = int(parent.data.metrics.get(STEP_METRIC, -1))
        self._kept_back: list[Metric] = []
        self._written_at = time.monotonic()

    @property
    def id(self) -> str:
        return str(self._parent.info.run_id)

    def candidate(self, candidate: TrackedCandidate) -> None:
        if candidate.name in self._done:
            return
        with _reachable(self._uri):
            run = self._begun.get(candidate.name) or self._begin(candidate)
            metrics, params = _as_metrics(_known(candidate.metrics)), _as_params(candidate.params)
            if metrics or params:
                self._client.log_batch(run.info.run_id, metrics=metrics, params=params)
            _put_text(run, candidate.source, candidate.source_file)
            self._client.set_terminated(run.info.run_id, FINISHED if candidate.valid else FAILED)
        self._done.add(candidate.name)

    def progress(self, step: int, metrics: Mapping[str, float | None]) -> None:
        if step <= self._last_step:
            return
        self._last_step = step
        self._kept_back += _as_metrics({**_known(metrics), STEP_METRIC: float(step)}, step)
        if time.monotonic() - self._written_at > KEPT_BACK_SECONDS:
            with _reachable(self._uri):
                self._write_kept_back()

    def close(self, status: str) -> None:
        """Write what is kept back and mark the search as finished or failed."""
        self._write_kept_back()
        self._client.set_terminated(self.id, status)

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

    def _begin(self, candidate: TrackedCandidate) -> Run:
        tags = {VALID_TAG: str(candidate.valid).lower(), SEED_TAG: str(self._search.seed), MLFLOW_PARENT_RUN_ID: self.id}
        return self._client.create_run(self._parent.info.experiment_id, tags=tags, run_name=candidate.name)

    def _write_kept_back(self) -> None:
        for first in range(0, len(self._kept_back), MAX_METRICS_PER_CALL):
            self._client.log_batch(self.id, metrics=self._kept_back[first : first + MAX_METRICS_PER_CALL])
        self._kept_back = []
        self._written_at = time.monotonic()

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
    if not uri.startswith(SQLITE_PREFIX):
        yield
        return
    path = Path(uri.removeprefix(SQLITE_PREFIX))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _create_with_write_ahead_log(path)
        yield


def _create_with_write_ahead_log(path: Path) -> None:
    """Make an empty database that stays in this mode for whoever opens it; where it cannot, it is a common one."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def _put_text(run: Run, content: str, name: str) -> None:
    """``log_text`` without asking for the run again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(content, encoding="utf-8", errors="backslashreplace")
        get_artifact_repository(run.info.artifact_uri).log_artifact(str(path))


def _known(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in metrics.items() if value is not None and math.isfinite(value)}


def _as_metrics(metrics: Mapping[str, float], step: int = 0) -> list[Metric]:
    now = int(time.time() * 1000)
    return [Metric(name, value, now, step) for name, value in metrics.items()]


def _as_params(params: Mapping[str, Any]) -> list[Param]:
    return [Param(name, str(value)[:MAX_PARAM_CHARS]) for name, value in params.items()]
