"""S: a question-independent summary of the whole trajectory, segment by segment (paper, Appendix A.1)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from mesa_pipeline.llm.concurrency import map_concurrently
from mesa_pipeline.structures.base import MemoryStructure, StoredMemory, StructureContext
from mesa_pipeline.structures.extractive_summary import ExtractiveSummarizer
from mesa_pipeline.structures.llm_summary import LlmSummarizer
from mesa_pipeline.structures.packing import packed
from mesa_pipeline.structures.records import clip
from mesa_pipeline.types import Evidence, EvidenceItem, Step, Trajectory

BUILD_VERSION = 1
CITATION = re.compile(r"^Steps? (\d{1,9})(?!\d)(?:-(\d{1,9})(?!\d))?", re.MULTILINE)


class Summarizer(Protocol):
    """Turns one segment into text. Equal arguments give equal text."""

    def identity(self) -> Mapping[str, Any]:
        """All that changes the text (parameters, model names, prompt fingerprints, a version): JSON-able."""
        ...

    def summarize(self, task: str, steps: Sequence[Step], preceding: Step | None) -> str:
        """Summarise one segment on its own.

        Args:
            task: What the agent was asked to do; empty for a dialogue.
            steps: The segment, at least one step.
            preceding: The step just before the segment, so that its first step can be told as a change; ``None`` at the start.

        Returns:
            One line per step or run of steps, each beginning with ``Step N`` or ``Steps N-M``.
        """
        ...


@dataclass(frozen=True, slots=True)
class SummarySegment:
    """Summary of the consecutive steps ``first``..``last``; ``cited`` are those of them that its text names."""

    first: int
    last: int
    text: str
    cited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SummaryState:
    """The segments in time order; none is ever missing."""

    segments: tuple[SummarySegment, ...]


class SummaryMemory(MemoryStructure[SummaryState]):
    """Turn-aligned segments, each summarised independently of the others, joined in time order.

    Args:
        summarizer: The builder strategy.
        window_chars: Construction window of one segment, in characters of serialised steps.
        max_chars: Most characters kept of one segment's summary, whatever the strategy returns.
        concurrency: Segments summarised at a time.
    """

    code = "S"
    name = "summary"

    def __init__(self, summarizer: Summarizer, window_chars: int, max_chars: int, concurrency: int = 1) -> None:
        self._summarizer = summarizer
        self._window_chars = window_chars
        self._max_chars = max_chars
        self._concurrency = concurrency

    @classmethod
    def create(cls, context: StructureContext) -> Self:
        settings = context.settings.structures.summary
        max_chars = settings.max_chars_per_segment
        extractive = ExtractiveSummarizer(max_chars, settings.max_chars_per_step)
        if settings.builder == "extractive":
            return cls(extractive, settings.window_chars, max_chars)
        concurrency = context.settings.llm.chat.max_concurrency
        return cls(LlmSummarizer(context.chat, max_chars, extractive), settings.window_chars, max_chars, concurrency)

    def build_identity(self) -> Mapping[str, Any]:
        return {
            "version": BUILD_VERSION,
            "summarizer": dict(self._summarizer.identity()),
            "window_chars": self._window_chars,
            "max_chars": self._max_chars,
        }

    def retrieve_identity(self) -> Mapping[str, Any]:
        return {"version": BUILD_VERSION}

    def build(self, trajectory: Trajectory) -> SummaryState:
        segments = list(packed(trajectory.steps, self._window_chars))

        def summarized(number: int) -> SummarySegment:
            preceding = segments[number - 1][-1] if number else None
            return self._summarize(trajectory.task, segments[number], preceding)

        return SummaryState(tuple(map_concurrently(summarized, range(len(segments)), self._concurrency)))

    def retrieve(self, memory: SummaryState, question: str) -> Evidence:
        """The whole summary, one item per segment, whatever the question."""
        return Evidence(self.code, tuple(EvidenceItem(segment.text, segment.cited) for segment in memory.segments))

    def encode(self, memory: SummaryState) -> StoredMemory:
        rows = [
            {"first": segment.first, "last": segment.last, "text": segment.text, "cited": list(segment.cited)}
            for segment in memory.segments
        ]
        return StoredMemory({"segments": rows})

    def decode(self, stored: StoredMemory) -> SummaryState:
        rows = stored.payload["segments"]
        return SummaryState(tuple(SummarySegment(row["first"], row["last"], row["text"], tuple(row["cited"])) for row in rows))

    def _summarize(self, task: str, steps: Sequence[Step], preceding: Step | None) -> SummarySegment:
        first, last = steps[0].index, steps[-1].index
        text = self._summarizer.summarize(task, steps, preceding).strip()
        text = clip(text or f"Steps {first}-{last}: (nothing noted)", self._max_chars).text
        return SummarySegment(first, last, text, cited_steps(text, steps))


def cited_steps(text: str, steps: Sequence[Step]) -> tuple[int, ...]:
    """Indices of those ``steps`` that a line of ``text`` begins with, as ``Step N`` or ``Steps N-M``; ascending."""
    ranges = [(int(match[1]), int(match[2] or match[1])) for match in CITATION.finditer(text)]
    return tuple(step.index for step in steps if any(first <= step.index <= last for first, last in ranges))
