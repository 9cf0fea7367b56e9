"""E-Mem's blocks, and the router that picks among them (paper, B.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.baselines.passages import BREAK
from mesa_pipeline.config import EmemSettings
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.stores.embedded import inner_products
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step


@dataclass(frozen=True)
class Block:
    """Consecutive steps, word for word.

    Attributes:
        text: The serialised steps.
        steps: Their indices.
        is_closed: Whether it is full.
    """

    text: str
    steps: tuple[int, ...]
    is_closed: bool


@dataclass(frozen=True)
class Routing:
    """What the closed blocks are picked by.

    Attributes:
        summaries: One a block.
        summary_vectors: Shape ``(blocks, dimensions)``, float32, L2-normalised.
        chunk_blocks: Shape ``(chunks,)``: the block of each chunk.
        chunk_vectors: Shape ``(chunks, dimensions)``, float32, L2-normalised.
        index: Text index whose documents are the blocks.
    """

    summaries: tuple[str, ...]
    summary_vectors: np.ndarray
    chunk_blocks: np.ndarray
    chunk_vectors: np.ndarray
    index: Bm25Index


def cut_blocks(steps: Sequence[Step], tokens: int, overlap: float, counter: TokenCounter) -> tuple[Block, ...]:
    """Blocks that close with the step that makes them full; the next one begins with the last steps that fit into the overlap.

    Args:
        steps: The trajectory's.
        tokens: A block that has so many is full.
        overlap: Share of a block that the next one repeats at most.
        counter: Counts tokens.
    """
    records = [serialize_step(step).text for step in steps]
    sizes = [counter.count(record) for record in records]
    blocks: list[Block] = []
    start = held = 0
    for position, size in enumerate(sizes):
        held += size
        if held >= tokens:
            blocks.append(_block(steps, records, start, position + 1, True))
            start = _repeated_from(sizes, start, position + 1, overlap * tokens)
            held = sum(sizes[start : position + 1])
    if steps and (not blocks or blocks[-1].steps[-1] != steps[-1].index):
        blocks.append(_block(steps, records, start, len(steps), False))
    return tuple(blocks)


def _repeated_from(sizes: Sequence[int], start: int, stop: int, room: float) -> int:
    """Where the next block begins: with the last steps of the one from ``start`` to ``stop`` that fit, never all of them."""
    while stop - 1 > start and sizes[stop - 1] <= room:
        stop -= 1
        room -= sizes[stop]
    return stop


def route(routing: Routing, question: str, vector: np.ndarray, settings: EmemSettings) -> list[int]:
    """Positions of the best blocks, best first: those that score above zero, else the first block.

    Args:
        routing: Of at least one closed block.
        question: The question.
        vector: Its vector, shape ``(dimensions,)``.
        settings: Weights, and how many chunks and blocks count.
    """
    signals = {
        "summary": inner_products(routing.summary_vectors, vector),
        "chunks": _chunk_means(routing, vector, settings.chunks_routed),
        "bm25": routing.index.scores(question),
    }
    scores = np.round(sum(getattr(settings.weights, name) * _spread(values) for name, values in signals.items()), 9)
    best = [int(n) for n in np.argsort(-scores, kind="stable")[: settings.blocks_routed] if scores[n] > 0]
    return best or [0]


def _chunk_means(routing: Routing, vector: np.ndarray, most: int) -> np.ndarray:
    """Mean similarity of each block's chunks among the most similar chunks of all; 0 for a block that has none there."""
    similarities = inner_products(routing.chunk_vectors, vector)
    best = np.argsort(-similarities, kind="stable")[:most]
    means = np.zeros(len(routing.summaries))
    for block in range(len(means)):
        own = similarities[best[routing.chunk_blocks[best] == block]]
        means[block] = own.mean() if len(own) else 0.0
    return means


def _spread(values: np.ndarray) -> np.ndarray:
    """Values from 0 for the smallest to 1 for the largest; all 0 where there is no difference."""
    values = values.astype(np.float64)
    width = values.max() - values.min()
    return (values - values.min()) / width if width > 0 else np.zeros_like(values)


def _block(steps: Sequence[Step], records: Sequence[str], start: int, stop: int, is_closed: bool) -> Block:
    return Block(BREAK.join(records[start:stop]), tuple(step.index for step in steps[start:stop]), is_closed)
