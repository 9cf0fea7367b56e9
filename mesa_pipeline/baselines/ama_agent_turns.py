"""What AMA-Agent remembers of a trajectory, and the turns it starts from (paper, B.1; Zhao et al. 2026)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mesa_pipeline.config import AmaAgentSettings
from mesa_pipeline.stores.embedded import best_matches, inner_products
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.structures.step_references import parse_references
from mesa_pipeline.structures.step_selection import select_steps
from mesa_pipeline.types import Step, Trajectory


@dataclass(frozen=True)
class AgentMemory:
    """A compressed state, the trajectory itself, and a dense index over its turns.

    Attributes:
        trajectory: What happened.
        state: The state memory.
        embedder: Name of the model that made the vectors.
        chunks: Positions of the turns that share each vector, in time order.
        vectors: Shape ``(chunks, dimensions)``, float32, L2-normalised.
    """

    trajectory: Trajectory
    state: str
    embedder: str
    chunks: tuple[tuple[int, ...], ...]
    vectors: np.ndarray

    @cached_property
    def _positions(self) -> dict[int, int]:
        return {step.index: position for position, step in enumerate(self.trajectory.steps)}

    @property
    def known(self) -> range:
        """From the first step index to the last; there is a step."""
        return range(self.trajectory.steps[0].index, self.trajectory.last_index + 1)

    def locate(self, indices: Iterable[int]) -> list[int]:
        """Positions of those indices that are steps, in their order, each once."""
        return list(dict.fromkeys(self._positions[index] for index in indices if index in self._positions))

    def scores(self, query: np.ndarray) -> np.ndarray:
        """Likeness of every turn to a query, shape ``(turns,)``: that of its chunk.

        Args:
            query: Shape ``(dimensions,)``, float32, L2-normalised.
        """
        return np.repeat(inner_products(self.vectors, query), [len(chunk) for chunk in self.chunks])


def chunked(steps: Sequence[Step], chunk_chars: int) -> tuple[tuple[int, ...], ...]:
    """Positions of consecutive turns, together until their records have ``chunk_chars`` characters or more."""
    chunks: list[tuple[int, ...]] = []
    held: list[int] = []
    size = 0
    for position, step in enumerate(steps):
        held.append(position)
        size += len(serialize_step(step).text)
        if size >= chunk_chars:
            chunks.append(tuple(held))
            held, size = [], 0
    return (*chunks, tuple(held)) if held else tuple(chunks)


def first_turns(memory: AgentMemory, question: str, scores: np.ndarray, settings: AmaAgentSettings) -> list[int]:
    """Positions of the turns most alike to a question, then of those it names; each once.

    Args:
        memory: Of a trajectory with a step.
        question: Any text.
        scores: Likeness of every turn, shape ``(turns,)``; turns of one chunk are alike, and the earlier ones come first.
        settings: How many.
    """
    likest = [match.position for match in best_matches(np.arange(len(scores)), scores, settings.top_k)]
    references = parse_references(question, memory.trajectory.last_index)
    named, exact, anchors = map(memory.locate, (references.indices, references.exact, references.anchors))
    kept = select_steps(set(named), set(exact), sorted(anchors), scores, settings.max_named)
    return list(dict.fromkeys((*likest, *kept)))[: settings.max_turns]
