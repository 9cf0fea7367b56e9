"""Flat dense retrieval: one vector for the task and one for each step (paper, B.1, "Qwen3-Emb-4B")."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance, check_embedder, stored_vectors
from mesa_pipeline.baselines.texts import first_tokens
from mesa_pipeline.config import FlatDenseSettings
from mesa_pipeline.llm import Embedder, TokenCounter, vectors_for
from mesa_pipeline.stores import Match
from mesa_pipeline.stores.embedded import RANKING_VERSION, ArrayVectorIndex
from mesa_pipeline.structures.base import StoredMemory
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 1
TASK = "Task: "


@dataclass(frozen=True)
class Units:
    """What was embedded, in time order.

    Attributes:
        embedder: Name of the model that made the vectors.
        steps: Index of each unit's step; ``None`` for the task.
        texts: The units, whole.
        vectors: Shape ``(units, dimensions)``, float32, L2-normalised.
        is_dialogue: Whether the trajectory is a conversation.
    """

    embedder: str
    steps: tuple[int | None, ...]
    texts: tuple[str, ...]
    vectors: np.ndarray
    is_dialogue: bool


class FlatDense(Baseline[Units]):
    """The units most similar to the question, best first.

    Args:
        settings: How long a text is embedded, and how many units are returned.
        embedder: Opens the embedding model.
        counter: Counts tokens.
    """

    code: ClassVar[str] = "flat_dense"
    name: ClassVar[str] = "flat_dense"
    title: ClassVar[str] = "Flat dense"
    query_model = "none"
    needs_embedder = True
    provenance = Provenance(
        source="Zhang et al. 2025 (Qwen3-Embedding-4B); the embedder of the settings is the one that runs",
        package=None,
        from_paper=(
            "task and steps as units, at most 512 tokens embedded of each",
            "normalised, inner product, five best in similarity order",
            "conversations: turns as units, ten best, an instruction before the query",
        ),
        choices=("inner products in NumPy, equal to a flat FAISS index", "the instruction's wording"),
    )

    def __init__(self, settings: FlatDenseSettings, embedder: Callable[[], Embedder], counter: TokenCounter) -> None:
        self._settings = settings
        self._embedder = embedder
        self._counter = counter

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        return cls(context.settings.baselines.flat_dense, context.embedder, context.counter)

    def build_identity(self) -> Mapping[str, Any]:
        limit = {"max_tokens": self._settings.max_tokens, "tokenizer": self._counter.name}
        return {"version": VERSION, "embedder": self._embedder().name, **limit}

    def retrieve_identity(self) -> Mapping[str, Any]:
        return {"version": VERSION, "ranking": RANKING_VERSION, **self._settings.model_dump(exclude={"max_tokens"})}

    def build(self, trajectory: Trajectory) -> Units:
        is_dialogue = trajectory.kind == "dialogue"
        units: list[tuple[int | None, str]] = [(step.index, serialize_step(step).text) for step in trajectory.steps]
        if trajectory.task and not is_dialogue:
            units.insert(0, (None, TASK + trajectory.task))
        embedder = self._embedder()
        embedded = [first_tokens(text, self._settings.max_tokens, self._counter) for _, text in units]
        vectors = vectors_for(embedded, embedder)
        return Units(embedder.name, tuple(step for step, _ in units), tuple(text for _, text in units), vectors, is_dialogue)

    def retrieve(self, memory: Units, question: str) -> Evidence:
        return self.retrieve_many(memory, [question])[0]

    def retrieve_many(self, memory: Units, questions: Sequence[str]) -> list[Evidence]:
        """Evidence for each question; the questions are embedded as one batch."""
        if not memory.texts:
            return [Evidence(self.code) for _ in questions]
        settings = self._settings
        instruction, top_k = (
            (settings.dialogue_instruction, settings.dialogue_top_k) if memory.is_dialogue else ("", settings.top_k)
        )
        queries = self._matching(memory.embedder).embed([instruction + question for question in questions])
        return [self._evidence(memory, found) for found in ArrayVectorIndex(memory.vectors).search(queries, top_k)]

    def encode(self, memory: Units) -> StoredMemory:
        payload = {"embedder": memory.embedder, "steps": memory.steps, "texts": memory.texts, "is_dialogue": memory.is_dialogue}
        return StoredMemory(payload, {"vectors": memory.vectors})

    def decode(self, stored: StoredMemory) -> Units:
        payload = stored.payload
        vectors = stored_vectors(stored, self._embedder())
        return Units(payload["embedder"], tuple(payload["steps"]), tuple(payload["texts"]), vectors, payload["is_dialogue"])

    def _matching(self, made_with: str) -> Embedder:
        embedder = self._embedder()
        check_embedder(made_with, embedder)
        return embedder

    def _evidence(self, memory: Units, matches: Sequence[Match]) -> Evidence:
        found = ((memory.texts[match.position], memory.steps[match.position], match.score) for match in matches)
        return Evidence(self.code, tuple(EvidenceItem(t, () if s is None else (s,), score) for t, s, score in found))
