"""What ``mesa doctor`` finds out about the servers that the settings have memories searched in."""

from collections.abc import Callable
from pathlib import Path

from mesa_pipeline.cli.endpoint_checks import UNUSED
from mesa_pipeline.config import Settings
from mesa_pipeline.stages.models import stores_of
from mesa_pipeline.stores import Store


def store_checks(settings: Settings, workspace: Path) -> dict[str, Callable[[], str]]:
    """What to try, by name: each says what it found in a line, or raises what is wrong."""
    return {
        "vector store": lambda: _described(stores_of(settings, workspace).vectors),
        "Elasticsearch": lambda: _described(stores_of(settings, workspace).texts),
    }


def _described(store: Store | None) -> str:
    return UNUSED if store is None else store.describe()
