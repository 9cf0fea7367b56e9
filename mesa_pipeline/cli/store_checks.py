"""What ``mesa doctor`` finds out about the servers that the settings have memories searched in."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from mesa_pipeline.cli.endpoint_checks import UNUSED
from mesa_pipeline.config import Settings
from mesa_pipeline.stages.models import stores_of


def store_checks(settings: Settings, workspace: Path) -> dict[str, Callable[[], str]]:
    """What to try, by name: each says what it found in a line, or raises what is wrong."""
    return {"Elasticsearch": partial(_elasticsearch, settings, workspace)}


def _elasticsearch(settings: Settings, workspace: Path) -> str:
    texts = stores_of(settings, workspace).texts
    return UNUSED if texts is None else texts.describe()
