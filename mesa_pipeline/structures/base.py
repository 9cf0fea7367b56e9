"""The promise every memory structure keeps (paper, Section 3.1: a builder B_k with its access mechanism Γ_k)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.config import Settings
from mesa_pipeline.llm import Embedder, OpenChat, no_chat
from mesa_pipeline.stores import Place, Store, Stores
from mesa_pipeline.types import Evidence, Trajectory

M = TypeVar("M")


@dataclass(frozen=True)
class StoredMemory:
    """A memory as data: a JSON-able payload, and arrays where numbers are many."""

    payload: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class StructureContext:
    """What a structure may be made from. ``embedder`` and ``chat`` open a model on first use: most structures never ask.

    ``stores`` are the servers that search copies of memories.
    """

    settings: Settings
    embedder: Callable[[], Embedder]
    chat: OpenChat = no_chat
    stores: Stores = field(default_factory=Stores)


class MemorySystem(ABC, Generic[M]):
    """One way of storing a trajectory together with one way of reading it.

    - ``build`` sees the trajectory alone: no question, no answer, no other episode. Equal input gives an equal memory.
    - A memory is read-only. ``retrieve`` changes nothing, so the order of questions never matters, and it returns text of that
      one trajectory only.
    - ``retrieve`` never fails on odd input: an empty trajectory, empty steps, an empty question or a question in any script
      give evidence, possibly empty. Items stand in the order they are to be read.
    - ``truncated`` says whether some step's text was cut: a structure shows at most ``evidence.max_chars_per_step`` characters
      of it, a baseline what its own description says.
    - ``decode(encode(memory))`` retrieves exactly what ``memory`` does, in any process.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    shares: ClassVar[tuple[str, ...]] = ()
    """Codes of the structures whose memories of the same trajectory this one is built from."""

    @abstractmethod
    def build_identity(self) -> Mapping[str, Any]:
        """All that changes what ``build`` makes (parameters, model names, prompt fingerprints, a version): JSON-able."""

    @abstractmethod
    def retrieve_identity(self) -> Mapping[str, Any]:
        """All that changes what ``retrieve`` returns from one and the same memory: JSON-able."""

    @abstractmethod
    def build(self, trajectory: Trajectory) -> M:
        """Make the memory of one trajectory."""

    def build_with(self, trajectory: Trajectory, shared: Mapping[str, Any]) -> M:
        """``build``, from memories that are there already.

        Args:
            trajectory: What to remember.
            shared: The memory of that trajectory in each of the structures in ``shares``, by code.
        """
        return self.build(trajectory)

    @abstractmethod
    def retrieve(self, memory: M, question: str) -> Evidence:
        """Read the memory for one question."""

    def retrieve_many(self, memory: M, questions: Sequence[str]) -> list[Evidence]:
        """Evidence for each question, in order; a structure that gains from batches overrides this."""
        return [self.retrieve(memory, question) for question in questions]

    @property
    def previews_evidence(self) -> bool:
        """Whether ``preview`` returns just what ``retrieve`` does, so that one may stand for the other."""
        return True

    def preview(self, memory: M, question: str) -> Evidence:
        """What the memory holds for a question, as far as it can be read without asking a language model.

        Policies choose by it before anything is read, so a structure whose ``retrieve`` asks a model overrides this, and
        ``previews_evidence`` with it.
        """
        return self.retrieve(memory, question)

    def preview_many(self, memory: M, questions: Sequence[str]) -> list[Evidence]:
        """``preview`` of each question, in order."""
        return [self.preview(memory, question) for question in questions]

    @abstractmethod
    def encode(self, memory: M) -> StoredMemory:
        """The memory as data that JSON and ``.npz`` can hold."""

    @abstractmethod
    def decode(self, stored: StoredMemory) -> M:
        """Inverse of ``encode``.

        Raises:
            ArtifactError: The data was made by something incompatible, such as another embedder; names both.
        """

    @property
    def store(self) -> Store | None:
        """The server's store that this structure searches in; most search in the process."""
        return None

    def publish(self, memory: M, place: Place) -> None:
        """Put the memory's index into ``store``, where there is one. Publishing again changes nothing."""

    def served(self, memory: M, place: Place) -> M:
        """The memory, searching in ``store`` where there is one: it retrieves what it did before.

        Raises:
            ArtifactError: The index is not there, or something incompatible made it.
        """
        return memory

    def keep_only(self, memories: Iterable[M]) -> None:
        """Remove what is kept outside of memories, of all but these; mostly nothing is. Doing it again changes nothing.

        Args:
            memories: All that a dataset has, whatever settings made them. None is being built meanwhile.

        Raises:
            ArtifactError: One of them cannot be read, so nothing may be removed.
        """

    def access_identity(self, steps: int) -> Mapping[str, Any]:
        """All that makes ``store`` retrieve otherwise than the process, for a trajectory of so many steps; mostly nothing."""
        return {}

    def memory_fingerprint(self, trajectory_fingerprint: str) -> str:
        """Key of the memory that ``build`` makes of a trajectory."""
        return fingerprint("memory", self.code, dict(self.build_identity()), trajectory_fingerprint)


class MemoryStructure(MemorySystem[M]):
    """One of the five whose combinations are swept."""

    @classmethod
    @abstractmethod
    def create(cls, context: StructureContext) -> Self:
        """Make the structure from settings."""
