"""Searches in MLflow: an experiment per dataset, a parent run per search, a child run per candidate.

Everything goes through ``MlflowClient``, so no active run is kept in the process. Every call is a transaction, so a candidate
takes as few as there can be, a search's own figures are kept back for a few seconds and written together, and a new SQLite
file gets a write-ahead log, which makes each of them three times as fast (docs/decisions/0083-searches-in-mlflow.md).
"""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Metric, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID, MLFLOW_RUN_NOTE

from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.tracking import SearchRun, TrackedCandidate, TrackedPolicy, TrackedSearch, TrackedTest
from mesa_pipeline.tracking.connection import as_metrics, as_params, known, open_client, reachable, unlogged
from mesa_pipeline.tracking.mlflow_traces import TRACES_EXPERIMENT, record_traces
from mesa_pipeline.tracking.registry import KEY_TAG, POLICY_ARTIFACTS, SEED_TAG, register
from mesa_pipeline.tracking.tables import has_tables, put_tables
from mesa_pipeline.tracking.traces import Trace

VALID_TAG, SEARCH_TAG = "mesa.valid", "mesa.search"
MAX_RUNS = 10_000
MAX_METRICS_PER_CALL = 1000
KEPT_BACK_SECONDS = 5.0
FINISHED, FAILED = "FINISHED", "FAILED"
STEP_METRIC = "iterations"


@dataclass(frozen=True)
class MlflowTracker:
    """Records searches in MLflow.

    Args:
        uri: A tracking server or database.
        artifacts: Folder for artifacts; ``None`` leaves the place to the server.
        tags: Put on every search.
        server: Address of a server that shows it.
    """

    uri: str
    artifacts: Path | None
    tags: Mapping[str, str] = field(default_factory=dict)
    server: str | None = None

    @contextmanager
    def search(self, search: TrackedSearch) -> Iterator[SearchRun]:
        with reachable(self.uri):
            run = MlflowSearchRun(self._client, self._parent(search), search, self.uri)
        try:
            yield run
        except BaseException:
            run.close(FAILED)
            raise
        with reachable(self.uri):
            run.close(FINISHED)

    def test(self, search: TrackedSearch, test: TrackedTest) -> bool:
        with reachable(self.uri):
            parent = self._parent(search)
            new = unlogged(parent, test.metrics)
            is_new = bool(new) or not has_tables(parent, test.tables)
            if is_new:
                put_tables(self._client, parent, test.tables)
                self._client.log_batch(parent.info.run_id, metrics=as_metrics(new))
            return is_new

    def promote(self, search: TrackedSearch, policy: TrackedPolicy, alias: str) -> None:
        with reachable(self.uri):
            register(self._client, self._parent(search), search, policy, [alias])

    def page(self, dataset: str) -> str | None:
        if self.server is None:
            return None
        try:
            with reachable(self.uri):
                return f"{self.server.rstrip('/')}/#/experiments/{self._experiment(dataset)}/runs"
        except MissingDependency:
            return None

    def traces(self, traces: Sequence[Trace]) -> Iterator[int]:
        if not traces:
            return
        with reachable(self.uri):
            yield from record_traces(self._client, self.uri, self._experiment(TRACES_EXPERIMENT), traces)

    @cached_property
    def _client(self) -> MlflowClient:
        return open_client(self.uri)

    def _experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        location = (self.artifacts / name).as_uri() if self.artifacts else None
        try:
            return str(self._client.create_experiment(name, artifact_location=location))
        except MlflowException:
            found = self._client.get_experiment_by_name(name)  # another process was faster
            if found is None:
                raise
            return str(found.experiment_id)

    def _parent(self, search: TrackedSearch) -> Run:
        experiment = self._experiment(search.dataset)
        found = self._client.search_runs([experiment], f"tags.`{KEY_TAG}` = '{search.key}'", max_results=1)
        if found:
            return self._described(found[0], search)
        tags = {**self.tags, KEY_TAG: search.key, SEED_TAG: str(search.seed), SEARCH_TAG: search.name}
        run = self._client.create_run(experiment, tags=tags, run_name=search.name)
        return self._described(run, search)

    def _described(self, run: Run, search: TrackedSearch) -> Run:
        """The run with the search's parameters, which one that was stopped, or first known by its policy, may lack."""
        told = as_params({"seed": search.seed, **search.params})
        if missing := [param for param in told if param.key not in run.data.params]:
            self._client.log_batch(run.info.run_id, params=missing)
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
        self.is_new = False

    @property
    def id(self) -> str:
        return str(self._parent.info.run_id)

    def candidate(self, candidate: TrackedCandidate) -> None:
        if candidate.name in self._done:
            return
        self.is_new = True
        with reachable(self._uri):
            run = self._begun.get(candidate.name) or self._begin(candidate)
            metrics, params = as_metrics(known(candidate.metrics)), as_params(candidate.params)
            if metrics or params:
                self._client.log_batch(run.info.run_id, metrics=metrics, params=params)
            _put_text(run, candidate.source, candidate.source_file)
            self._client.set_terminated(run.info.run_id, FINISHED if candidate.valid else FAILED)
        self._done.add(candidate.name)

    def progress(self, step: int, metrics: Mapping[str, float | None]) -> None:
        if step <= self._last_step:
            return
        self._last_step, self.is_new = step, True
        self._kept_back += as_metrics({**known(metrics), STEP_METRIC: float(step)}, step)
        if time.monotonic() - self._written_at > KEPT_BACK_SECONDS:
            with reachable(self._uri):
                self._write_kept_back()

    def close(self, status: str) -> None:
        """Write what is kept back and mark the search as finished or failed; one that gained nothing is left as it was."""
        self._write_kept_back()
        if self.is_new or self._parent.info.status != status:
            self._client.set_terminated(self.id, status)

    def freeze(self, policy: TrackedPolicy, aliases: Sequence[str] = ()) -> None:
        with reachable(self._uri):
            note = f"Frozen policy of split seed {self._search.seed}; its files are under artifacts, {POLICY_ARTIFACTS}/."
            if new := unlogged(self._parent, policy.metrics):
                self._client.log_batch(self.id, metrics=as_metrics(new), tags=[RunTag(MLFLOW_RUN_NOTE, note)])
                self.is_new = True
            register(self._client, self._parent, self._search, policy, aliases)

    def _begin(self, candidate: TrackedCandidate) -> Run:
        tags = {
            VALID_TAG: str(candidate.valid).lower(),
            SEED_TAG: str(self._search.seed),
            SEARCH_TAG: self._search.name,
            MLFLOW_PARENT_RUN_ID: self.id,
        }
        return self._client.create_run(self._parent.info.experiment_id, tags=tags, run_name=candidate.name)

    def _write_kept_back(self) -> None:
        for first in range(0, len(self._kept_back), MAX_METRICS_PER_CALL):
            self._client.log_batch(self.id, metrics=self._kept_back[first : first + MAX_METRICS_PER_CALL])
        self._kept_back = []
        self._written_at = time.monotonic()


def _put_text(run: Run, content: str, name: str) -> None:
    """``log_text`` without asking for the run again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(content, encoding="utf-8", errors="backslashreplace")
        get_artifact_repository(run.info.artifact_uri).log_artifact(str(path))
