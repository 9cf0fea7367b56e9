"""Opening the baselines, and any memory system by its code."""

from pathlib import Path
from typing import Any

from mesa_pipeline.baselines import BASELINES, Baseline, BaselineContext, open_baselines
from mesa_pipeline.config import ENDPOINT, Settings
from mesa_pipeline.errors import ConfigError
from mesa_pipeline.stages.models import (
    chat_opener,
    embedder_opener,
    kept,
    structure_of,
    structures_of,
    token_counter,
    waits_for_endpoint,
)
from mesa_pipeline.structures.base import MemorySystem

ENVIRONMENTS = "environments"
SCRATCH = "baselines"
"""Folders of the workspace: of what wrapped packages are installed in, and of what they store."""


@kept
def baselines_of(settings: Settings, workspace: Path) -> dict[str, Baseline[Any]]:
    """All baselines by code; what language models reply is kept in the workspace."""
    context = BaselineContext(
        settings,
        embedder_opener(settings, workspace),
        token_counter(settings),
        chat_opener(settings, workspace),
        structures_of(settings, workspace),
        environments=workspace / ENVIRONMENTS,
        scratch=workspace / SCRATCH,
    )
    return open_baselines(context)


def baseline_of(settings: Settings, workspace: Path, code: str) -> Baseline[Any]:
    """The baseline of a code such as ``bm25``.

    Raises:
        ConfigError: There is none; lists those there are.
    """
    if code not in BASELINES:
        raise ConfigError(f"no baseline {code!r}; known are {', '.join(BASELINES)}")
    return baselines_of(settings, workspace)[code]


def system_of(settings: Settings, workspace: Path, code: str) -> MemorySystem[Any]:
    """The structure or the baseline of a code.

    Raises:
        ConfigError: There is none.
    """
    return baselines_of(settings, workspace)[code] if code in BASELINES else structure_of(settings, workspace, code)


def build_waits(settings: Settings, code: str) -> bool:
    """Whether building mostly waits for an endpoint: then threads do it, and not processes."""
    if code not in BASELINES:
        return waits_for_endpoint(settings, "build", code)
    return BASELINES[code].needs_model or (BASELINES[code].needs_embedder and settings.llm.embedder == ENDPOINT)
