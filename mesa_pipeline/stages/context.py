"""What every stage is given."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import Settings
from mesa_pipeline.search.loop import SearchProgress, unwatched


class Progress(Protocol):
    """Told how far long work is; called from the main thread, from ``done = 0`` to ``done = total``."""

    def __call__(self, description: str, done: int, total: int) -> None: ...


def silent(description: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class StageContext:
    """Where a stage works, on what, and how.

    Attributes:
        layout: Paths of the dataset's artifacts.
        settings: The settings.
        data_path: The dataset's file or folder; ``None`` for a dataset that needs none.
        skip_invalid: Leave out bad rows, count and list them, instead of stopping.
        progress: Told how far long work is.
        watch_search: Told how far a policy search is, after each of its iterations.
    """

    layout: Layout
    settings: Settings
    data_path: Path | None = None
    skip_invalid: bool = False
    progress: Progress = silent
    watch_search: Callable[[SearchProgress], None] = unwatched

    @property
    def dataset(self) -> str:
        return self.layout.dataset
