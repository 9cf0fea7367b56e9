"""E-Mem: blocks of unchanged history, each read by an assistant of its own (paper, B.1; Wang et al. 2026)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance, stored_vectors
from mesa_pipeline.baselines.e_mem_routing import Block, Routing, cut_blocks, route
from mesa_pipeline.config import EmemSettings
from mesa_pipeline.llm import Embedder, Message, OpenChat, TokenCounter, vectors_for
from mesa_pipeline.llm.concurrency import map_concurrently
from mesa_pipeline.llm.metering import note
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.structured import without_reasoning
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.stores.embedded import RANKING_VERSION
from mesa_pipeline.structures.base import StoredMemory
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 1
PROMPTS = Path(__file__).parent / "prompts"
SUMMARY, EXTRACT, AGGREGATE = (Prompt.load(PROMPTS / f"e_mem_{name}.md") for name in ("summary", "extract", "aggregate"))
CHARS_PER_WORD = 6
NOTHING = "none"


@dataclass(frozen=True)
class Blocks:
    """The history in blocks, and what questions are routed by.

    Attributes:
        blocks: In time order; all but the last are closed, and the last is if it is full.
        embedder: Name of the model that made the vectors.
        routing: Of the closed blocks.
    """

    blocks: tuple[Block, ...]
    embedder: str
    routing: Routing


class Report(NamedTuple):
    """What the keeper of one block gave back; empty where nothing bears on the question."""

    block: Block
    text: str


class EMem(Baseline[Blocks]):
    """A router picks blocks, an assistant for each gives back what bears on the question, and all that is merged.

    Args:
        settings: Blocks, router and replies.
        chat: Opens the model.
        embedder: Opens the embedding model.
        counter: Counts tokens.
        concurrency: Blocks summarised or read at a time.
    """

    code: ClassVar[str] = "e_mem"
    name: ClassVar[str] = "e_mem"
    title: ClassVar[str] = "E-Mem"
    query_model = "loop"
    needs_embedder = True
    needs_model = True
    provenance = Provenance(
        source="Wang et al. 2026 (arXiv 2601.21714)",
        package=None,
        from_paper=(
            "blocks of 4,096 tokens with 10 % overlap, each kept word for word with a summary",
            "a router over summaries, chunks of 512 and BM25, weighted 0.3, 0.4 and 0.3, at most five blocks",
            "an assistant for each block, then one merger of what they give back",
        ),
        choices=(
            "the text mode, not the one that keeps blocks as KV caches",
            "overlap in whole steps; chunks measured in characters, with the paper's overlap of 50",
            "the block that is not full yet has no summary, and is always asked",
            "a single report needs no merger; without any report there is no evidence",
        ),
    )

    def __init__(
        self, settings: EmemSettings, chat: OpenChat, embedder: Callable[[], Embedder], counter: TokenCounter, concurrency: int
    ) -> None:
        self._settings = settings
        self._chat = chat
        self._embedder = embedder
        self._counter = counter
        self._concurrency = concurrency

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        settings = context.settings
        concurrency = settings.llm.chat.max_concurrency
        return cls(settings.baselines.e_mem, context.chat, context.embedder, context.counter, concurrency)

    def build_identity(self) -> Mapping[str, Any]:
        settings = self._settings.model_dump(
            include={"block_tokens", "overlap", "chunk_chars", "chunk_overlap_chars", "summary_words", "ranking"}
        )
        return {
            "version": VERSION,
            "model": self._chat("remember", None, self._settings.max_tokens).name,
            "prompt": SUMMARY.fingerprint,
            "embedder": self._embedder().name,
            "tokenizer": self._counter.name,
            "settings": settings,
        }

    def retrieve_identity(self) -> Mapping[str, Any]:
        model = self._chat("recall", None, self._settings.max_tokens).name
        settings = self._settings.model_dump(include={"weights", "chunks_routed", "blocks_routed"})
        return {
            "version": VERSION,
            "ranking": RANKING_VERSION,
            "model": model,
            "prompts": [EXTRACT.fingerprint, AGGREGATE.fingerprint],
            "settings": settings,
        }

    def build(self, trajectory: Trajectory) -> Blocks:
        """Cut, and summarise what is full.

        Raises:
            ModelError: The model gave no reply.
        """
        settings, embedder = self._settings, self._embedder()
        blocks = cut_blocks(trajectory.steps, settings.block_tokens, settings.overlap, self._counter)
        closed = [block for block in blocks if block.is_closed]
        summaries = map_concurrently(self._summary, closed, self._concurrency)
        chunks = [(n, chunk) for n, block in enumerate(closed) for chunk in self._chunks(block.text)]
        texts = [*summaries, *(text for _, text in chunks)]
        vectors = vectors_for(texts, embedder)
        routing = Routing(
            summaries=tuple(summaries),
            summary_vectors=vectors[: len(summaries)],
            chunk_blocks=np.array([n for n, _ in chunks], dtype=np.int64),
            chunk_vectors=vectors[len(summaries) :],
            index=Bm25Index.build([block.text for block in closed], settings.ranking),
        )
        return Blocks(blocks, embedder.name, routing)

    def retrieve(self, memory: Blocks, question: str) -> Evidence:
        """What the keepers of the routed blocks, and of the open one, gave back.

        Raises:
            ModelError: The model gave no reply.
        """
        asked = [memory.blocks[n] for n in self._routed(memory, question)]
        asked += [block for block in memory.blocks if not block.is_closed]
        note("blocks read", len(asked))
        reports = map_concurrently(partial(self._report, question), asked, self._concurrency)
        told = sorted((report for report in reports if report.text), key=lambda report: report.block.steps)
        if not told:
            return Evidence(self.code)
        text = told[0].text if len(told) == 1 else self._merged(question, told)
        steps = tuple(sorted({step for report in told for step in report.block.steps}))
        return Evidence(self.code, (EvidenceItem(text, steps),) if text else ())

    def encode(self, memory: Blocks) -> StoredMemory:
        routing = memory.routing
        payload = {
            "blocks": [[block.text, list(block.steps), block.is_closed] for block in memory.blocks],
            "embedder": memory.embedder,
            "summaries": list(routing.summaries),
            "index": routing.index.data,
        }
        vectors = {
            "summary_vectors": routing.summary_vectors,
            "chunk_blocks": routing.chunk_blocks,
            "chunk_vectors": routing.chunk_vectors,
        }
        return StoredMemory(payload, {**vectors, **routing.index.arrays})

    def decode(self, stored: StoredMemory) -> Blocks:
        payload, arrays = stored.payload, stored.arrays
        blocks = tuple(Block(text, tuple(steps), closed) for text, steps, closed in payload["blocks"])
        routing = Routing(
            summaries=tuple(payload["summaries"]),
            summary_vectors=stored_vectors(stored, self._embedder(), "summary_vectors"),
            chunk_blocks=np.asarray(arrays["chunk_blocks"]),
            chunk_vectors=stored_vectors(stored, self._embedder(), "chunk_vectors"),
            index=Bm25Index.restore(payload["index"], arrays, self._settings.ranking),
        )
        return Blocks(blocks, payload["embedder"], routing)

    def _routed(self, memory: Blocks, question: str) -> list[int]:
        """Positions of the closed blocks to ask, best first."""
        if not memory.routing.summaries:
            return []
        vector = self._embedder().embed([question])[0]
        return route(memory.routing, question, vector, self._settings)

    def _chunks(self, text: str) -> list[str]:
        size, overlap = self._settings.chunk_chars, self._settings.chunk_overlap_chars
        return [text[start : start + size] for start in range(0, max(len(text) - overlap, 1), size - overlap)]

    def _summary(self, block: Block) -> str:
        filled = SUMMARY.fill(block=block.text, max_words=self._settings.summary_words)
        text = self._say("remember", filled)[: self._settings.summary_words * CHARS_PER_WORD]
        if not text:
            note("empty summaries")
        return text

    def _report(self, question: str, block: Block) -> Report:
        text = self._say("recall", EXTRACT.fill(block=block.text, question=question))
        return Report(block, "" if text.strip(" .*`\"'").lower() == NOTHING else text)

    def _merged(self, question: str, reports: Sequence[Report]) -> str:
        told = "\n\n".join(f"<report of steps {r.block.steps[0]} to {r.block.steps[-1]}>\n{r.text}\n</report>" for r in reports)
        merged = self._say("recall", AGGREGATE.fill(reports=told, question=question))
        if not merged:
            note("empty mergers")
        return merged or told

    def _say(self, role: Any, text: str) -> str:
        reply = self._chat(role, None, self._settings.max_tokens).complete([Message("user", text)])
        return without_reasoning(reply.text).strip()
