"""Opening the baselines, and any memory system by its code."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.baselines import BASELINES, Baseline, BaselineContext, open_baselines
from mesa_pipeline.config import ENDPOINT, ChatChoice, EmbedderChoice, Settings
from mesa_pipeline.errors import ConfigError
from mesa_pipeline.llm import Embedder, OpenChat
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.policies.sandbox.searching import search
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
from mesa_pipeline.types import Trajectory

ENVIRONMENTS = "environments"
"""Folder of the workspace, of what wrapped packages are installed in."""


def baselines_of(settings: Settings, layout: Layout) -> dict[str, Baseline[Any]]:
    """All baselines by code, for one dataset.

    What language models reply is kept in the workspace. What wrapped packages store is kept with the dataset: two that hold
    the same episode share nothing of it.
    """
    return _opened(settings, layout.workspace, layout.scratch)


@kept
def _opened(settings: Settings, workspace: Path, scratch: Path) -> dict[str, Baseline[Any]]:
    context = BaselineContext(
        settings,
        embedder_opener(settings, workspace),
        token_counter(settings),
        chat_opener(settings, workspace),
        partial(_chosen_chat, settings, workspace),
        partial(_chosen_embedder, settings, workspace),
        structures_of(settings, workspace),
        partial(run_confined, settings),
        environments=workspace / ENVIRONMENTS,
        scratch=scratch,
    )
    return open_baselines(context)


def _chosen_chat(settings: Settings, workspace: Path, choice: ChatChoice) -> OpenChat:
    llm = settings.llm.model_copy(update={"chat": settings.llm.chat.model_copy(update=choice.changes)})
    return chat_opener(settings.model_copy(update={"llm": llm}), workspace)


def _chosen_embedder(settings: Settings, workspace: Path, choice: EmbedderChoice) -> Callable[[], Embedder]:
    llm = settings.llm
    embeddings = llm.embeddings.model_copy(update=choice.changes)
    embedder = choice.embedder or (ENDPOINT if choice.changes else llm.embedder)
    chosen = llm.model_copy(update={"embedder": embedder, "embeddings": embeddings})
    return embedder_opener(settings.model_copy(update={"llm": chosen}), workspace)


def run_confined(settings: Settings, program: str, trajectory: Trajectory) -> str:
    """What a language model's program finds in a trajectory; see ``policies.sandbox.searching``.

    Raises:
        PolicyError: It is refused, failed, or overran a limit.
        MissingDependency: This system cannot confine it.
    """
    return search(open_sandbox(settings.policies.sandbox), settings.baselines.ama_agent.search, program, trajectory)


def baseline_of(settings: Settings, layout: Layout, code: str) -> Baseline[Any]:
    """The baseline of a code such as ``bm25``.

    Raises:
        ConfigError: There is none; lists those there are.
    """
    known_baseline(code)
    return baselines_of(settings, layout)[code]


def known_baseline(code: str) -> type[Baseline[Any]]:
    """The class of a baseline.

    Raises:
        ConfigError: There is none of that code; lists those there are.
    """
    if code not in BASELINES:
        raise ConfigError(f"no baseline {code!r}; known are {', '.join(BASELINES)}")
    return BASELINES[code]


def system_of(settings: Settings, layout: Layout, code: str) -> MemorySystem[Any]:
    """The structure or the baseline of a code.

    Raises:
        ConfigError: There is none.
    """
    return baselines_of(settings, layout)[code] if code in BASELINES else structure_of(settings, layout.workspace, code)


def build_waits(settings: Settings, code: str) -> bool:
    """Whether building mostly waits for an endpoint: then threads do it, and not processes."""
    if code not in BASELINES:
        return waits_for_endpoint(settings, "build", code)
    return BASELINES[code].needs_model or (BASELINES[code].needs_embedder and settings.llm.embedder == ENDPOINT)
