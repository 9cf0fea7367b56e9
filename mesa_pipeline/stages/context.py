"""What every stage is given."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import LlmSettings, Settings
from mesa_pipeline.errors import ConfigError
from mesa_pipeline.evaluation.rewards import TokenF1
from mesa_pipeline.evaluation.sweep import Reading
from mesa_pipeline.llm import Embedder
from mesa_pipeline.llm.tokens import QwenTokenCounter
from mesa_pipeline.reading.extractive import ExtractiveReader
from mesa_pipeline.search.loop import SearchProgress, unwatched
from mesa_pipeline.structures import open_structures
from mesa_pipeline.structures.base import MemoryStructure, StructureContext


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


@cache
def structures_of(settings: Settings) -> dict[str, MemoryStructure[Any]]:
    """The five structures by code; the same objects, and so the same loaded model, for the same settings."""
    return open_structures(StructureContext(settings, embedder_opener(settings.llm)))


def structure_of(settings: Settings, code: str) -> MemoryStructure[Any]:
    """The structure of a code such as ``S``.

    Raises:
        ConfigError: There is none; lists those there are.
    """
    known = structures_of(settings)
    if code not in known:
        names = ", ".join(f"{structure.code} ({structure.name})" for structure in known.values())
        raise ConfigError(f"no structure {code!r}; known are {names}")
    return known[code]


def embedder_opener(settings: LlmSettings) -> Callable[[], Embedder]:
    """Opens the embedder on the first call and hands out the same one afterwards."""

    @cache
    def open_embedder() -> Embedder:
        from mesa_pipeline.llm.local import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(settings.embedder, settings.embedder_batch_size, settings.embedder_threads)

    return open_embedder


@cache
def open_reading(settings: Settings, dataset: str) -> Reading:
    """Reader, token counter and reward named in the settings; the reward is the dataset's own function."""
    reader = ExtractiveReader(settings.reading.extractive)
    return Reading(reader, QwenTokenCounter(settings.llm.tokenizer), TokenF1(dataset))
