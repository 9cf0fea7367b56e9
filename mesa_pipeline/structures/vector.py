"""V: one embedding per step, read by similarity (paper, A.1, "Vector Database (V) Memory")."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.llm import Embedder, vectors_for
from mesa_pipeline.stores import Match, Place, VectorIndex, VectorStore
from mesa_pipeline.stores.embedded import RANKING_VERSION, ArrayVectorIndex
from mesa_pipeline.structures.base import MemoryStructure, StoredMemory, StructureContext
from mesa_pipeline.structures.records import clip, serialize_step
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 1


@dataclass(frozen=True)
class StepVectors:
    """The steps of a trajectory with their vectors.

    Attributes:
        embedder: Name of the model that made the vectors.
        steps: Step indices.
        records: Serialised steps, whole.
        vectors: Shape ``(steps, dimensions)``, float32, L2-normalised.
        server: The server's index of the same vectors, where one is searched.
    """

    embedder: str
    steps: tuple[int, ...]
    records: tuple[str, ...]
    vectors: np.ndarray
    server: VectorIndex | None = None

    @property
    def index(self) -> VectorIndex:
        """What is searched."""
        return self.server or ArrayVectorIndex(self.vectors)


class VectorMemory(MemoryStructure[StepVectors]):
    """Step embeddings; ``retrieve`` returns the steps with the largest inner products, best first.

    Args:
        embedder: Opens the embedding model; called when a name or a vector is asked for.
        top_k: Steps to return.
        max_chars_per_step: Longest record wanted in evidence, characters.
        store: Server that searches published memories; ``None`` to search in the process.
    """

    code: ClassVar[str] = "V"
    name: ClassVar[str] = "vector"

    def __init__(
        self, embedder: Callable[[], Embedder], top_k: int, max_chars_per_step: int, store: VectorStore | None = None
    ) -> None:
        self._embedder = embedder
        self._top_k = top_k
        self._max_chars = max_chars_per_step
        self._store = store

    @classmethod
    def create(cls, context: StructureContext) -> Self:
        settings = context.settings
        vector, evidence = settings.structures.vector, settings.evidence
        return cls(context.embedder, vector.top_k, evidence.max_chars_per_step, context.stores.vectors)

    def build_identity(self) -> Mapping[str, Any]:
        return {"version": VERSION, "embedder": self._embedder().name}

    def retrieve_identity(self) -> Mapping[str, Any]:
        reading = {"top_k": self._top_k, "max_chars_per_step": self._max_chars}
        return {"version": VERSION, "ranking": RANKING_VERSION, **reading}

    def build(self, trajectory: Trajectory) -> StepVectors:
        embedder = self._embedder()
        records = tuple(serialize_step(step).text for step in trajectory.steps)
        indices = tuple(step.index for step in trajectory.steps)
        return StepVectors(embedder.name, indices, records, vectors_for(records, embedder))

    def retrieve(self, memory: StepVectors, question: str) -> Evidence:
        return self.retrieve_many(memory, [question])[0]

    def retrieve_many(self, memory: StepVectors, questions: Sequence[str]) -> list[Evidence]:
        """Evidence for each question; the questions are embedded as one batch."""
        if not memory.steps:
            return [Evidence(self.code) for _ in questions]
        queries = self._matching_embedder(memory.embedder).embed(questions)
        found = memory.index.search(queries, self._top_k)
        return [self._evidence(memory, matches) for matches in found]

    def encode(self, memory: StepVectors) -> StoredMemory:
        payload = {"embedder": memory.embedder, "steps": list(memory.steps), "records": list(memory.records)}
        return StoredMemory(payload, {"vectors": memory.vectors})

    def decode(self, stored: StoredMemory) -> StepVectors:
        self._matching_embedder(stored.payload["embedder"])
        payload = stored.payload
        vectors = np.asarray(stored.arrays["vectors"], dtype=np.float32)
        return StepVectors(payload["embedder"], tuple(payload["steps"]), tuple(payload["records"]), vectors)

    @property
    def store(self) -> VectorStore | None:
        return self._store

    def publish(self, memory: StepVectors, place: Place) -> None:
        if self._store is not None and memory.steps:
            self._store.put(place, memory.vectors, memory.embedder)

    def served(self, memory: StepVectors, place: Place) -> StepVectors:
        if self._store is None or not memory.steps:
            return memory
        return replace(memory, server=self._store.open(place, self._embedder().name))

    def access_identity(self, steps: int) -> Mapping[str, Any]:
        approximation = self._store.approximation(steps) if self._store else None
        return {"approximation": approximation} if approximation else {}

    def _matching_embedder(self, made_with: str) -> Embedder:
        embedder = self._embedder()
        if made_with != embedder.name:
            raise ArtifactError(
                f"this vector memory was built with embedder {made_with!r} but llm.embedder is {embedder.name!r}; "
                "set it back, or build the memories again"
            )
        return embedder

    def _evidence(self, memory: StepVectors, matches: Sequence[Match]) -> Evidence:
        items: list[EvidenceItem] = []
        truncated = False
        for match in matches:
            record = clip(memory.records[match.position], self._max_chars)
            truncated |= record.truncated
            items.append(EvidenceItem(record.text, (memory.steps[match.position],), match.score, is_record=True))
        return Evidence(self.code, tuple(items), truncated)
