"""What every baseline is: a memory system read alone, that says where it comes from (paper, Appendix B.1)."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np

from mesa_pipeline.config import ChatChoice, EmbedderChoice, Settings
from mesa_pipeline.errors import ArtifactError, MissingDependency
from mesa_pipeline.llm import Embedder, OpenChat, TokenCounter, no_chat
from mesa_pipeline.structures.base import MemoryStructure, MemorySystem, StoredMemory
from mesa_pipeline.types import Trajectory

M = TypeVar("M")
QueryModel = Literal["none", "once", "loop"]
"""How often a language model is asked before the reader: never, a fixed number of times, or as often as it wants."""


@dataclass(frozen=True)
class Provenance:
    """Where a baseline comes from, for whoever reads its figures.

    Attributes:
        source: The system's own paper.
        package: The package that runs, with its version; ``None`` where the mechanism is written anew from its description.
        from_paper: What the paper says of the configuration, and is as it says.
        choices: What it leaves open or what cannot be had here, and what was chosen instead.
    """

    source: str
    package: str | None
    from_paper: tuple[str, ...]
    choices: tuple[str, ...]


class RunProgram(Protocol):
    """Runs a program that a language model wrote, confined, over one trajectory."""

    def __call__(self, program: str, trajectory: Trajectory) -> str:
        """What the program found, as text.

        Args:
            program: Python source; hostile input.
            trajectory: What it searches.

        Raises:
            PolicyError: It is refused, failed, or overran a limit; the message can be shown to its author.
            MissingDependency: This system cannot confine it.
        """
        ...


def no_programs(program: str, trajectory: Trajectory) -> str:
    """Where nothing was set up to confine programs.

    Raises:
        MissingDependency: Always.
    """
    raise MissingDependency("a program that a language model wrote is to be run, and nothing here confines it")


@dataclass(frozen=True)
class BaselineContext:
    """What a baseline may be made from. Models are opened on first use.

    Attributes:
        settings: All settings; a baseline's own stand under ``baselines``.
        embedder: Opens the embedder.
        counter: Counts tokens as the answer model does.
        chat: Opens the language model of a role: ``remember`` to build, ``recall`` to retrieve.
        choose_chat: Opens the models of another endpoint; ``None`` where there are none but ``chat``.
        choose_embedder: Opens another embedder; ``None`` where there is none but ``embedder``.
        structures: The five structures by code, some of whose memories a baseline may be built from.
        run_program: Runs what a language model wrote.
        environments: Folder of the worker environments that ``mesa baselines install`` makes.
        scratch: Folder for what a wrapped package stores outside its memory.
    """

    settings: Settings
    embedder: Callable[[], Embedder]
    counter: TokenCounter
    chat: OpenChat = no_chat
    choose_chat: Callable[[ChatChoice], OpenChat] | None = None
    choose_embedder: Callable[[EmbedderChoice], Callable[[], Embedder]] | None = None
    structures: Mapping[str, MemoryStructure[Any]] = field(default_factory=dict)
    run_program: RunProgram = no_programs
    environments: Path | None = None
    scratch: Path | None = None

    def chat_of(self, choice: ChatChoice) -> OpenChat:
        """The language models that a baseline's settings choose."""
        return self.choose_chat(choice) if self.choose_chat and choice.changes else self.chat

    def embedder_of(self, choice: EmbedderChoice) -> Callable[[], Embedder]:
        """The embedder that a baseline's settings choose."""
        chosen = choice.embedder or choice.changes
        return self.choose_embedder(choice) if self.choose_embedder and chosen else self.embedder


def check_embedder(made_with: str, embedder: Embedder) -> None:
    """See that a memory is asked by the embedder it was made with.

    Raises:
        ArtifactError: It is another one; names both.
    """
    if made_with != embedder.name:
        raise ArtifactError(f"this memory was built with embedder {made_with!r}, not {embedder.name!r}; build it again")


def stored_vectors(stored: StoredMemory, embedder: Embedder, name: str = "vectors") -> np.ndarray:
    """Vectors of a stored memory, shape ``(texts, dimensions)``, float32; its payload names the ``embedder`` that made them.

    Raises:
        ArtifactError: Another embedder made them; names both.
    """
    check_embedder(stored.payload["embedder"], embedder)
    return np.asarray(stored.arrays[name], dtype=np.float32)


class Baseline(MemorySystem[M]):
    """A memory system that MESA is compared with.

    It answers with the reader, the judge, the splits and the token counter that MESA answers with; only what it remembers and
    what it returns are its own. A memory never crosses episodes, and reading it changes nothing.
    """

    title: ClassVar[str]
    """Name in tables, as in the paper."""
    query_model: ClassVar[QueryModel]
    needs_embedder: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False
    """Whether building or retrieving asks a language model."""
    provenance: ClassVar[Provenance]

    @classmethod
    @abstractmethod
    def create(cls, context: BaselineContext) -> Self:
        """Make the baseline from settings."""
