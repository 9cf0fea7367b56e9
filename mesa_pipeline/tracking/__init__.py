"""Where searches and their candidates are recorded for people to compare.

The pipeline's own artifacts never depend on a tracker: with ``NullTracker`` every result is the same.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import TrackingSettings


@dataclass(frozen=True)
class TrackedSearch:
    """A policy search: one parent run.

    Attributes:
        dataset: Names the experiment.
        seed: Seed of the split searched on.
        key: Fingerprint of all that the search depends on. The same key is the same search: recording it again adds nothing.
        params: What was searched with, such as lambda, reader, embedder and tokenizer. Never a secret.
    """

    dataset: str
    seed: int
    key: str
    params: Mapping[str, object] = field(default_factory=dict)


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


class SearchRun(Protocol):
    """An open search."""

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

    def freeze(self, directory: Path, metrics: Mapping[str, float | None], *, champion: bool) -> None:
        """Record the frozen policy.

        Args:
            directory: Folder of plain files that make the policy.
            metrics: Its figures on validation.
            champion: Whether it becomes the one to ask: the dataset's ``champion``.
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

    def test(self, search: TrackedSearch, metrics: Mapping[str, float | None]) -> None:
        """Add the held-out figures of the search's frozen policy."""
        ...


class NullTracker:
    """Records nothing."""

    @contextmanager
    def search(self, search: TrackedSearch) -> Iterator[SearchRun]:
        yield NullSearchRun()

    def test(self, search: TrackedSearch, metrics: Mapping[str, float | None]) -> None:
        pass


class NullSearchRun:
    """The search of a ``NullTracker``."""

    def candidate(self, candidate: TrackedCandidate) -> None:
        pass

    def progress(self, step: int, metrics: Mapping[str, float | None]) -> None:
        pass

    def freeze(self, directory: Path, metrics: Mapping[str, float | None], *, champion: bool) -> None:
        pass


def open_tracker(settings: TrackingSettings, layout: Layout, tags: Mapping[str, str] | None = None) -> Tracker:
    """The tracker the settings ask for; nothing is opened before its first use.

    Args:
        settings: Whether to track, and where; with no ``uri``, a SQLite file in the workspace.
        layout: Where the workspace is.
        tags: Put on every search, such as the orchestrator's run id.
    """
    if not settings.enabled:
        return NullTracker()
    from mesa_pipeline.tracking.mlflow import MlflowTracker

    if settings.uri:
        return MlflowTracker(settings.uri, artifacts=None, tags=tags or {})
    database = layout.tracking_database.absolute()
    return MlflowTracker(f"sqlite:///{database}", artifacts=layout.tracking_artifacts.absolute(), tags=tags or {})


__all__ = ["NullTracker", "SearchRun", "TrackedCandidate", "TrackedSearch", "Tracker", "open_tracker"]
