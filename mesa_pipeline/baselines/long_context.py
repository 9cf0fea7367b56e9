"""Long-context: the whole history, its oldest part left out where the window ends (paper, B.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance
from mesa_pipeline.baselines.texts import last_tokens
from mesa_pipeline.config import LongContextSettings
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.structures.base import StoredMemory
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 1


@dataclass(frozen=True)
class WholeHistory:
    """The most recent steps that fit into the window, in time order.

    Attributes:
        steps: Step indices.
        records: Serialised steps; of the first, the end where its beginning did not fit.
        truncated: Whether anything was left out.
    """

    steps: tuple[int, ...]
    records: tuple[str, ...]
    truncated: bool


class LongContext(Baseline[WholeHistory]):
    """The whole trajectory as evidence.

    Args:
        settings: Window and what is kept free in it.
        counter: Counts tokens.
    """

    code: ClassVar[str] = "long_context"
    name: ClassVar[str] = "long_context"
    title: ClassVar[str] = "Long-context"
    query_model = "none"
    provenance = Provenance(
        source="no memory system: the backbone reads everything",
        package=None,
        from_paper=("whole trajectory", "beyond the window the most recent history is kept"),
        choices=(
            "window 32,768 tokens, of which some are kept free for prompt and answer",
            "the oldest step that fits in part keeps its end",
        ),
    )

    def __init__(self, settings: LongContextSettings, counter: TokenCounter) -> None:
        self._settings = settings
        self._counter = counter

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        return cls(context.settings.baselines.long_context, context.counter)

    def build_identity(self) -> Mapping[str, Any]:
        room = {"room": self._room, "break_tokens": self._settings.break_tokens}
        return {"version": VERSION, "tokenizer": self._counter.name, **room}

    def retrieve_identity(self) -> Mapping[str, Any]:
        return {"version": VERSION}

    def build(self, trajectory: Trajectory) -> WholeHistory:
        room, kept = self._room, list[str]()
        for step in reversed(trajectory.steps):
            record = serialize_step(step).text
            tokens = self._counter.count(record) + self._settings.break_tokens
            if tokens > room:
                kept += [rest] if (rest := last_tokens(record, room - self._settings.break_tokens, self._counter)) else []
                break
            kept.append(record)
            room -= tokens
        steps = tuple(step.index for step in trajectory.steps[len(trajectory.steps) - len(kept) :])
        records = tuple(reversed(kept))
        whole = len(kept) == len(trajectory.steps) and (not kept or records[0] == serialize_step(trajectory.steps[0]).text)
        return WholeHistory(steps, records, not whole)

    def retrieve(self, memory: WholeHistory, question: str) -> Evidence:
        items = tuple(EvidenceItem(record, (step,)) for step, record in zip(memory.steps, memory.records, strict=True))
        return Evidence(self.code, items, memory.truncated)

    def encode(self, memory: WholeHistory) -> StoredMemory:
        return StoredMemory({"steps": memory.steps, "records": memory.records, "truncated": memory.truncated})

    def decode(self, stored: StoredMemory) -> WholeHistory:
        payload = stored.payload
        return WholeHistory(tuple(payload["steps"]), tuple(payload["records"]), payload["truncated"])

    @property
    def _room(self) -> int:
        """Tokens that the history may have."""
        return self._settings.window_tokens - self._settings.reserved_tokens
