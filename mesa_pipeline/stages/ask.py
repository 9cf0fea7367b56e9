"""Ask: answer one person's question over one trajectory, reading only what a frozen policy selects."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import Layout, is_current, slug
from mesa_pipeline.evaluation.sweep import Reading
from mesa_pipeline.policies.base import PolicyInput
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.stages.storage import read_memory, trajectory_fingerprint, write_memory
from mesa_pipeline.structures.base import MemoryStructure
from mesa_pipeline.types import Answer, ComposedEvidence, Evidence, Trajectory


class Selector(Protocol):
    """A fitted policy."""

    def select(self, question: PolicyInput) -> int: ...

    def explain(self, question: PolicyInput) -> str: ...


@dataclass(frozen=True)
class AskResult:
    """An answer with everything it rests on.

    Attributes:
        answer: The reader's answer.
        subset: Mask of the structures read.
        reason: Why the policy chose them, in one line.
        evidence: What each structure read returned, by code.
        composed: The evidence as the reader saw it, with its tokens.
        seconds: Wall time by phase: build, retrieve, answer.
    """

    answer: Answer
    subset: int
    reason: str
    evidence: Mapping[str, Evidence]
    composed: ComposedEvidence
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class MemoryShelf:
    """Memories of trajectories asked about, built on first use and kept in the workspace."""

    structures: Mapping[str, MemoryStructure[Any]]
    layout: Layout

    def open(self, code: str, trajectory: Trajectory) -> Any:
        """The memory of a trajectory in one structure, built unless a current one is kept."""
        structure = self.structures[code]
        expected = structure.memory_fingerprint(trajectory_fingerprint(trajectory))
        key = slug(trajectory.id)
        if not is_current(self.layout.memory(structure.name, key), expected):
            memory = structure.build(trajectory)
            write_memory(self.layout, structure, key, memory, {"fingerprint": expected, "episode_id": trajectory.id})
        return read_memory(self.layout, structure, key)


def ask(
    question: str,
    trajectory: Trajectory,
    policy: Selector,
    memories: MemoryShelf,
    reading: Reading,
) -> AskResult:
    """Answer a question.

    Only the structures that the policy selects are built and read.

    Args:
        question: The question.
        trajectory: What it is about.
        policy: Chooses the structures; it is shown no benchmark label.
        memories: Builds memories, and keeps them for the next question.
        reading: Composes and answers.
    """
    asked = PolicyInput(question, {}, len(trajectory.steps))
    subset = policy.select(asked)
    selected = subsets.decode(subset)
    seconds: dict[str, float] = {}
    with _timed(seconds, "build"):
        opened = {code: memories.open(code, trajectory) for code in selected}
    with _timed(seconds, "retrieve"):
        evidence = {code: memories.structures[code].retrieve(opened[code], question) for code in selected}
    with _timed(seconds, "answer"):
        composed = Composer(evidence, reading.counter).compose(subset)
        answer = reading.reader.answer(question, trajectory.task, composed)
    return AskResult(answer, subset, policy.explain(asked), evidence, composed, seconds)


@contextmanager
def _timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[phase] = time.perf_counter() - started
