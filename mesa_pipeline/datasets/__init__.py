"""Where episodes come from. To add a source: a module here, a line in ``DATASETS``, a tiny sample under tests."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mesa_pipeline.config import DatasetsSettings
from mesa_pipeline.datasets import ama_bench, locomo, synthetic, traces
from mesa_pipeline.datasets.rows import LoadedEpisodes
from mesa_pipeline.errors import DataError


@dataclass(frozen=True)
class DatasetSource:
    """A way to load episodes.

    Attributes:
        load: Called with the data path (``None`` where the user gave none), the settings, and whether a bad row is skipped and
            listed (True) or stops the load (False).
        needs_path: Whether it cannot go without a data path.
        description: One line for ``--help``.
        settings: Name of its section in the settings, part of what makes a load current.
    """

    load: Callable[[Path | None, DatasetsSettings, bool], LoadedEpisodes]
    needs_path: bool
    description: str
    settings: str | None = None


DATASETS: dict[str, DatasetSource] = {
    "synthetic": DatasetSource(synthetic.load, False, "our own seeded simulator; needs no data", "synthetic"),
    "ama_bench": DatasetSource(
        ama_bench.load, False, "AMA-Bench rows (JSONL), from a file or the pinned hub revision", "ama_bench"
    ),
    "locomo": DatasetSource(locomo.load, True, "LoCoMo conversations (locomo10.json)", "locomo"),
    "traces": DatasetSource(traces.load, True, "your own logs: chat messages with tool calls, or action/observation lines"),
}


def dataset_source(name: str) -> DatasetSource:
    """Look a source up by its name, or by that of a data set it reads: ``traces`` and ``traces.support`` are the same source.

    Raises:
        DataError: There is none of that name; lists those there are.
    """
    source = name.partition(".")[0]
    if source not in DATASETS:
        raise DataError(f"unknown dataset {name!r}; known are {', '.join(DATASETS)}")
    return DATASETS[source]


def dataset_names(settings: DatasetsSettings) -> tuple[str, ...]:
    """Every data set there is: one of each source, and those of one's own.

    Raises:
        DataError: One of them names a source that does not exist.
    """
    for name in settings.own:
        dataset_source(name)
    return (*DATASETS, *settings.own)


__all__ = ["DATASETS", "DatasetSource", "LoadedEpisodes", "dataset_names", "dataset_source"]
