"""R: overlapping windows of the unchanged trajectory, read by BM25 (paper, A.1, "Raw Episodic (R) Memory")."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

from mesa_pipeline.config import Bm25Settings, RawSettings
from mesa_pipeline.stores import Match, Place, TextIndex, TextStore
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.structures.base import MemoryStructure, StoredMemory, StructureContext
from mesa_pipeline.structures.records import clip, serialize_step
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 1
RECORD_BREAK = "\n\n"


class Window(NamedTuple):
    """Consecutive steps by position in the trajectory, ``start`` included and ``stop`` not."""

    start: int
    stop: int


@dataclass(frozen=True)
class RawTrace:
    """The steps of a trajectory and the windows over them.

    Attributes:
        steps: Step indices, by position.
        records: Serialised steps, whole, by position.
        windows: Windows in time order.
        index: Text index whose documents are the windows.
        server: The server's index of the same windows, where one is searched.
    """

    steps: tuple[int, ...]
    records: tuple[str, ...]
    windows: tuple[Window, ...]
    index: Bm25Index
    server: TextIndex | None = None


def split_windows(length: int, settings: RawSettings) -> tuple[Window, ...]:
    """Windows over ``length`` steps: w = clip(ceil(L/12), 3, 16), overlap round(0.25 w), stride w - overlap (paper, A.1).

    Windows begin at multiples of the stride; the first one to reach the last step ends there, so the last may be shorter.
    """
    wanted = math.ceil(length / settings.windows_per_trajectory)
    size = min(max(wanted, settings.min_window), settings.max_window)
    stride = max(size - round(settings.overlap * size), 1)
    count = math.ceil(max(length - size, 0) / stride) + 1 if length else 0
    return tuple(Window(number * stride, min(number * stride + size, length)) for number in range(count))


class RawMemory(MemoryStructure[RawTrace]):
    """Raw windows; ``retrieve`` returns the windows that score above zero, the best few, or else the single best one.

    Args:
        windows: How windows are cut, and how many to return.
        bm25: How windows are ranked.
        max_chars_per_step: Longest record wanted in evidence, characters; ranking sees the whole text.
        store: Server that ranks published windows; ``None`` to rank in the process.
    """

    code: ClassVar[str] = "R"
    name: ClassVar[str] = "raw"

    def __init__(
        self, windows: RawSettings, bm25: Bm25Settings, max_chars_per_step: int, store: TextStore | None = None
    ) -> None:
        self._windows = windows
        self._bm25 = bm25
        self._max_chars = max_chars_per_step
        self._store = store

    @classmethod
    def create(cls, context: StructureContext) -> Self:
        settings = context.settings
        raw, bm25, evidence = settings.structures.raw, settings.stores.bm25, settings.evidence
        return cls(raw, bm25, evidence.max_chars_per_step, context.stores.texts)

    def build_identity(self) -> Mapping[str, Any]:
        return {"version": VERSION, "tokenizer": self._bm25.tokenizer, "windows": self._windows.model_dump(exclude={"top_k"})}

    def retrieve_identity(self) -> Mapping[str, Any]:
        return {
            "version": VERSION,
            "bm25": self._bm25.model_dump(),
            "top_k": self._windows.top_k,
            "max_chars_per_step": self._max_chars,
        }

    def build(self, trajectory: Trajectory) -> RawTrace:
        records = tuple(serialize_step(step).text for step in trajectory.steps)
        windows = split_windows(len(records), self._windows)
        texts = [RECORD_BREAK.join(records[window.start : window.stop]) for window in windows]
        steps = tuple(step.index for step in trajectory.steps)
        return RawTrace(steps, records, windows, Bm25Index.build(texts, self._bm25))

    def retrieve(self, memory: RawTrace, question: str) -> Evidence:
        matches = (memory.server or memory.index).search(question, self._windows.top_k)
        chosen = [match for match in matches if match.score > 0] or matches[:1]
        return self._evidence(memory, sorted(chosen))

    def encode(self, memory: RawTrace) -> StoredMemory:
        payload = {"steps": memory.steps, "records": memory.records, "windows": memory.windows, "index": memory.index.data}
        return StoredMemory(payload, memory.index.arrays)

    def decode(self, stored: StoredMemory) -> RawTrace:
        payload = stored.payload
        return RawTrace(
            steps=tuple(payload["steps"]),
            records=tuple(payload["records"]),
            windows=tuple(Window(*window) for window in payload["windows"]),
            index=Bm25Index.restore(payload["index"], stored.arrays, self._bm25),
        )

    @property
    def store(self) -> TextStore | None:
        return self._store

    def publish(self, memory: RawTrace, place: Place) -> None:
        if self._store is not None and memory.windows:
            self._store.put(place, memory.index)

    def served(self, memory: RawTrace, place: Place) -> RawTrace:
        if self._store is None or not memory.windows:
            return memory
        return replace(memory, server=self._store.open(place))

    def _evidence(self, memory: RawTrace, matches: Sequence[Match]) -> Evidence:
        """Windows in time order; a step that two of them share is shown in the first."""
        items: list[EvidenceItem] = []
        truncated = False
        shown = 0
        for match in matches:
            window = memory.windows[match.position]
            positions = range(max(window.start, shown), window.stop)
            records = [clip(memory.records[position], self._max_chars) for position in positions]
            text = RECORD_BREAK.join(record.text for record in records)
            steps = tuple(memory.steps[position] for position in positions)
            items.append(EvidenceItem(text, steps, match.score, is_record=True))
            truncated |= any(record.truncated for record in records)
            shown = window.stop
        return Evidence(self.code, tuple(items), truncated)
