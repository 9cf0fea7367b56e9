"""MemoRAG: a model that remembers the whole history says what to look up in it (paper, B.1; Qian et al. 2025)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance, stored_vectors
from mesa_pipeline.baselines.passages import Passage, as_records, from_records, in_tokens
from mesa_pipeline.baselines.texts import last_tokens
from mesa_pipeline.config import MemoragSettings
from mesa_pipeline.llm import Embedder, Message, OpenChat, TokenCounter, vectors_for
from mesa_pipeline.llm.metering import note
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.structured import without_reasoning
from mesa_pipeline.stores.embedded import RANKING_VERSION, ArrayVectorIndex
from mesa_pipeline.structures.base import StoredMemory
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 1
PROMPTS = Path(__file__).parent / "prompts"
SPANS, QUERIES = Prompt.load(PROMPTS / "memorag_spans.md"), Prompt.load(PROMPTS / "memorag_queries.md")
MARK = re.compile(r"^[ \t]{0,8}(?:[-*•]|\d{1,3}[.)])[ \t]+")
"""What a line of a list begins with; a line that begins with a figure of its own keeps it."""
MAX_REPLY_CHARS = 20_000
"""What follows is not read: no honest list of clues is longer."""


@dataclass(frozen=True)
class GlobalMemory:
    """What the model remembers, and what its clues are looked up in.

    Attributes:
        remembered: The history as far as it fits, its oldest part left out first.
        truncated: Whether any was left out.
        embedder: Name of the model that made the vectors.
        chunks: The whole history, in time order.
        vectors: Shape ``(chunks, dimensions)``, float32, L2-normalised.
    """

    remembered: str
    truncated: bool
    embedder: str
    chunks: tuple[Passage, ...]
    vectors: np.ndarray


class MemoRag(Baseline[GlobalMemory]):
    """Clues from memory, each looked up; what they find stands in time order.

    Args:
        settings: Memory, clues and chunks.
        chat: Opens the model that remembers.
        embedder: Opens the embedding model.
        counter: Counts tokens.
    """

    code: ClassVar[str] = "memorag"
    name: ClassVar[str] = "memorag"
    title: ClassVar[str] = "MemoRAG (LLM memory)"
    query_model = "once"
    needs_embedder = True
    needs_model = True
    provenance = Provenance(
        source="Qian et al. 2025",
        package=None,
        from_paper=(
            "512-token chunks in a dense index, three for each query",
            "spans and surrogate queries recalled from a memory of everything; the union of what they find, each chunk once",
        ),
        choices=(
            "a language model that reads the history stands in for memorag-qwen2-7b-inst, whose compressed memory needs own "
            "weights and a GPU: baselines.memorag.memory names an endpoint that serves it. It is not MemoRAG's own memory",
            "the embedder of the settings for bge-m3: baselines.memorag.embeddings names another",
            "that model sees the most recent 28,000 tokens of a longer history, and gives at most ten clues a reply",
            "lines of at most three words are no clue; the question itself is looked up too; chunks stand in time order",
        ),
    )

    def __init__(
        self, settings: MemoragSettings, chat: OpenChat, embedder: Callable[[], Embedder], counter: TokenCounter
    ) -> None:
        self._settings = settings
        self._chat = chat
        self._embedder = embedder
        self._counter = counter

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        settings = context.settings.baselines.memorag
        chat, embedder = context.chat_of(settings.memory), context.embedder_of(settings.embeddings)
        return cls(settings, chat, embedder, context.counter)

    def build_identity(self) -> Mapping[str, Any]:
        limits = {"chunk_tokens": self._settings.chunk_tokens, "memory_tokens": self._settings.memory_tokens}
        return {"version": VERSION, "embedder": self._embedder().name, "tokenizer": self._counter.name, **limits}

    def retrieve_identity(self) -> Mapping[str, Any]:
        chat = self._chat("recall", None, self._settings.max_tokens)
        settings = self._settings.model_dump(include={"top_k", "min_words", "max_clues", "max_tokens"})
        return {
            "version": VERSION,
            "ranking": RANKING_VERSION,
            "model": chat.name,
            "prompts": [SPANS.fingerprint, QUERIES.fingerprint],
            "settings": settings,
        }

    def build(self, trajectory: Trajectory) -> GlobalMemory:
        whole = "\n\n".join(serialize_step(step).text for step in trajectory.steps)
        remembered = last_tokens(whole, self._settings.memory_tokens, self._counter)
        chunks, embedder = in_tokens(trajectory.steps, self._settings.chunk_tokens, self._counter), self._embedder()
        vectors = vectors_for([chunk.text for chunk in chunks], embedder)
        return GlobalMemory(remembered, len(remembered) < len(whole), embedder.name, chunks, vectors)

    def retrieve(self, memory: GlobalMemory, question: str) -> Evidence:
        """The chunks that the question and its clues find.

        Raises:
            ModelError: The model gave no reply.
        """
        if not memory.chunks:
            return Evidence(self.code)
        clues = [clue for prompt in (SPANS, QUERIES) for clue in self._clues(prompt, memory, question)]
        queries = list(dict.fromkeys([*clues, question]))
        found: dict[int, float] = {}
        for matches in ArrayVectorIndex(memory.vectors).search(self._embedder().embed(queries), self._settings.top_k):
            for match in matches:
                found[match.position] = max(match.score, found.get(match.position, match.score))
        items = (
            EvidenceItem(memory.chunks[position].text, memory.chunks[position].steps, found[position])
            for position in sorted(found)
        )
        return Evidence(self.code, tuple(items))

    def encode(self, memory: GlobalMemory) -> StoredMemory:
        payload = {
            "remembered": memory.remembered,
            "truncated": memory.truncated,
            "embedder": memory.embedder,
            "chunks": as_records(memory.chunks),
        }
        return StoredMemory(payload, {"vectors": memory.vectors})

    def decode(self, stored: StoredMemory) -> GlobalMemory:
        payload = stored.payload
        vectors = stored_vectors(stored, self._embedder())
        remembered, chunks = payload["remembered"], from_records(payload["chunks"])
        return GlobalMemory(remembered, payload["truncated"], payload["embedder"], chunks, vectors)

    def _clues(self, prompt: Prompt, memory: GlobalMemory, question: str) -> list[str]:
        settings = self._settings
        text = prompt.fill(history=memory.remembered, question=question, max_lines=settings.max_clues)
        reply = self._chat("recall", None, settings.max_tokens).complete([Message("user", text)]).text
        clues = read_clues(reply, settings.min_words)[: settings.max_clues]
        note("clues", len(clues))
        return clues


def read_clues(reply: str, min_words: int) -> list[str]:
    """The lines of a reply that have enough words, each once."""
    lines = (MARK.sub("", line).strip() for line in without_reasoning(reply)[:MAX_REPLY_CHARS].splitlines())
    return list(dict.fromkeys(line for line in lines if len(line.split()) >= min_words))
