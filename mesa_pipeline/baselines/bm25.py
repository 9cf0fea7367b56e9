"""BM25 over pieces of steps (paper, B.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance
from mesa_pipeline.baselines.texts import pieces
from mesa_pipeline.config import Bm25BaselineSettings
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.structures.base import StoredMemory
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 1


@dataclass(frozen=True)
class Pieces:
    """Pieces of the serialised steps, in time order.

    Attributes:
        steps: Index of the step that each piece is of.
        texts: The pieces.
        index: Text index whose documents they are.
    """

    steps: tuple[int, ...]
    texts: tuple[str, ...]
    index: Bm25Index


class Bm25(Baseline[Pieces]):
    """The pieces that rank highest, best first; a score below zero, as one or two documents can give, excludes none.

    Args:
        settings: How steps are cut, and how pieces are ranked.
    """

    code: ClassVar[str] = "bm25"
    name: ClassVar[str] = "bm25"
    title: ClassVar[str] = "BM25"
    query_model = "none"
    provenance = Provenance(
        source="Robertson and Zaragoza 2009, as rank-bm25 0.2.2 ranks",
        package=None,
        from_paper=(
            "steps cut into pieces of at most 800 characters",
            "lower-cased white-space terms, k1 1.5, b 0.75, epsilon 0.25",
            "an index for each episode, five best pieces",
        ),
        choices=("equal scores stand in time order",),
    )

    def __init__(self, settings: Bm25BaselineSettings) -> None:
        self._settings = settings

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        return cls(context.settings.baselines.bm25)

    def build_identity(self) -> Mapping[str, Any]:
        return {"version": VERSION, "chunk_chars": self._settings.chunk_chars, "tokenizer": self._settings.ranking.tokenizer}

    def retrieve_identity(self) -> Mapping[str, Any]:
        return {"version": VERSION, "ranking": self._settings.ranking.model_dump(), "top_k": self._settings.top_k}

    def build(self, trajectory: Trajectory) -> Pieces:
        cut = [
            (step.index, piece)
            for step in trajectory.steps
            for piece in pieces(serialize_step(step).text, self._settings.chunk_chars)
        ]
        texts = tuple(text for _, text in cut)
        return Pieces(tuple(step for step, _ in cut), texts, Bm25Index.build(texts, self._settings.ranking))

    def retrieve(self, memory: Pieces, question: str) -> Evidence:
        matches = memory.index.search(question, self._settings.top_k)
        items = (EvidenceItem(memory.texts[m.position], (memory.steps[m.position],), m.score) for m in matches)
        return Evidence(self.code, tuple(items))

    def encode(self, memory: Pieces) -> StoredMemory:
        return StoredMemory({"steps": memory.steps, "texts": memory.texts, "index": memory.index.data}, memory.index.arrays)

    def decode(self, stored: StoredMemory) -> Pieces:
        payload = stored.payload
        index = Bm25Index.restore(payload["index"], stored.arrays, self._settings.ranking)
        return Pieces(tuple(payload["steps"]), tuple(payload["texts"]), index)
