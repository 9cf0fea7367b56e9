"""Where searches and their candidates are recorded for people to compare.

The pipeline's own artifacts never depend on a tracker: with ``NullTracker`` every result is the same.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from mesa_pipeline.artifacts import Layout, RunningServices
from mesa_pipeline.artifacts.services import POLICIES_SHOWN, TRACKING
from mesa_pipeline.config import TrackingSettings
from mesa_pipeline.tracking.traces import Trace

# Read by MLflow, which no module below imports before this one; whoever runs it may set them otherwise.
for variable, value in {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # standard output is the caller's, and each address costs a request
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # its 7 take minutes to say that a server is down
}.items():
    os.environ.setdefault(variable, value)

CHAMPION, CHALLENGER = "champion", "challenger"
"""Aliases of the model ``policy-<dataset>``: the policy that is asked, and the one that may take its place."""


@dataclass(frozen=True)
class TrackedSearch:
    """A policy search: one parent run.

    Attributes:
        dataset: Names the experiment.
        seed: Seed of the split searched on.
        key: Fingerprint of all that the search depends on. The same key is the same search: recording it again adds nothing.
        params: What was searched with, such as lambda, reader, embedder and tokenizer. Never a secret.
        variation: Which variation of the settings was searched with; empty for the settings as they are.
    """

    dataset: str
    seed: int
    key: str
    params: Mapping[str, object] = field(default_factory=dict)
    variation: str = ""

    @property
    def name(self) -> str:
        """What people tell it from others by."""
        return "-".join(filter(None, (f"search-seed-{self.seed}", self.variation)))


@dataclass(frozen=True)
class TrackedCandidate:
    """A candidate policy: one child run.

    Attributes:
        name: Unique within the search.
        metrics: Figures on validation, such as score, tokens, objective and structures; ``None`` or NaN where there is none.
        source: The policy as text, kept as an artifact.
        source_file: File name for the source.
        valid: Whether the candidate kept the policy contract; one that did not is marked as failed.
        params: What it is, such as direction, slot, parents and hypothesis, or why it was refused.
    """

    name: str
    metrics: Mapping[str, float | None]
    source: str
    source_file: str = "policy.json"
    valid: bool = True
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TrackedPolicy:
    """A frozen policy: one version of the model ``policy-<dataset>``.

    Attributes:
        directory: Folder of plain files that make the policy.
        metrics: Its figures on validation, under the names that its candidate has them under.
        tags: What it was made from, such as split seed, validation score, package version and profile.
        description: The same for a person to read.
    """

    directory: Path
    metrics: Mapping[str, float | None]
    tags: Mapping[str, str] = field(default_factory=dict)
    description: str = ""


@dataclass(frozen=True)
class TrackedTest:
    """What the frozen policy of a search, and others beside it, were worth on held-out questions.

    Attributes:
        metrics: Figures by name.
        tables: Rows by name of the table, each with the same columns.
    """

    metrics: Mapping[str, float | None]
    tables: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)


class SearchRun(Protocol):
    """An open search."""

    @property
    def is_new(self) -> bool:
        """Whether anything was recorded that was not there before."""
        ...

    def candidate(self, candidate: TrackedCandidate) -> None:
        """Record a candidate; one of the same name that is recorded whole is left alone."""
        ...

    def progress(self, step: int, metrics: Mapping[str, float | None]) -> None:
        """Record figures of the search as a whole after a step; of a step recorded before nothing is added.

        Args:
            step: Iterations done, rising from call to call.
            metrics: Figures by name, such as the best objective so far.
        """
        ...

    def freeze(self, policy: TrackedPolicy, aliases: Sequence[str] = ()) -> None:
        """Record the frozen policy as a version of the dataset's model; one recorded before is left alone.

        Args:
            policy: The policy.
            aliases: Names that point at this version from now on, such as ``seed-0``.
        """
        ...


class Tracker(Protocol):
    """Records searches. Called from the main thread only.

    Raises:
        MissingDependency: The place of record cannot be reached; the message says how to go on without it.
    """

    def search(self, search: TrackedSearch) -> AbstractContextManager[SearchRun]:
        """Open a search, new or known; it is marked finished on a normal exit and failed on an exception."""
        ...

    def test(self, search: TrackedSearch, test: TrackedTest) -> bool:
        """Add the held-out figures of the search's frozen policy; whether any was not there before."""
        ...

    def promote(self, search: TrackedSearch, policy: TrackedPolicy, alias: str) -> None:
        """Point an alias of the model ``policy-<dataset>`` at a search's frozen policy, wherever it pointed before.

        Args:
            search: The search that the policy was chosen in; known from here on where it was not recorded.
            policy: The policy; registered where it was not.
            alias: ``CHAMPION``, ``CHALLENGER`` or another.
        """
        ...

    def page(self, dataset: str) -> str | None:
        """Address of the page that lists a dataset's searches and candidates; ``None`` where no server shows it."""
        ...

    def traces(self, traces: Sequence[Trace]) -> Iterator[int]:
        """Record traces of questions, oldest first; those of an id that is there are left alone.

        Yields:
            How many more are recorded.
        """
        ...


class NullTracker:
    """Records nothing."""

    @contextmanager
    def search(self, search: TrackedSearch) -> Iterator[SearchRun]:
        yield NullSearchRun()

    def test(self, search: TrackedSearch, test: TrackedTest) -> bool:
        return False

    def promote(self, search: TrackedSearch, policy: TrackedPolicy, alias: str) -> None:
        pass

    def page(self, dataset: str) -> str | None:
        return None

    def traces(self, traces: Sequence[Trace]) -> Iterator[int]:
        yield from ()


class NullSearchRun:
    """The search of a ``NullTracker``."""

    is_new = False

    def candidate(self, candidate: TrackedCandidate) -> None:
        pass

    def progress(self, step: int, metrics: Mapping[str, float | None]) -> None:
        pass

    def freeze(self, policy: TrackedPolicy, aliases: Sequence[str] = ()) -> None:
        pass


def open_tracker(settings: TrackingSettings, layout: Layout, tags: Mapping[str, str] | None = None) -> Tracker:
    """The tracker the settings ask for; nothing is opened before its first use.

    Args:
        settings: Whether to track, and where; with no ``uri``, the database that `mesa up` started for the workspace or,
            where none runs, a SQLite file in it.
        layout: Where the workspace is.
        tags: Put on every search, such as the orchestrator's run id.
    """
    if not settings.enabled:
        return NullTracker()
    from mesa_pipeline.tracking.mlflow import MlflowTracker

    if settings.uri:
        return MlflowTracker(settings.uri, artifacts=None, tags=tags or {}, server=_shown_at(settings.uri))
    running = RunningServices.of(layout.workspace)
    file = f"sqlite:///{layout.tracking_database.absolute()}"
    uri = running.databases.get(TRACKING, file) if running else file
    server = running.urls.get(POLICIES_SHOWN) if running else None
    return MlflowTracker(uri, artifacts=layout.tracking_artifacts.absolute(), tags=tags or {}, server=server)


def _shown_at(uri: str) -> str | None:
    """Address of a tracking server for people, without a name or password that may stand in it."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme in {"http", "https"} else None


__all__ = [
    "CHALLENGER",
    "CHAMPION",
    "NullTracker",
    "SearchRun",
    "TrackedCandidate",
    "TrackedPolicy",
    "TrackedSearch",
    "TrackedTest",
    "Tracker",
    "open_tracker",
]
