"""T: the step-indexed store, read by the steps a question names (paper, A.1, "Temporal Store (T) Memory")."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

from mesa_pipeline.config import Bm25Settings, TemporalSettings
from mesa_pipeline.stores import Match
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.structures.base import MemoryStructure, StoredMemory, StructureContext
from mesa_pipeline.structures.records import clip, serialize_step
from mesa_pipeline.structures.step_references import References, parse_references
from mesa_pipeline.structures.step_selection import select_steps
from mesa_pipeline.types import Evidence, EvidenceItem, Step, Trajectory

VERSION = 1
ACTIONS_HEADING = "Actions of the steps named:"


class SufficiencyChecker(Protocol):
    """Judges whether retrieved steps suffice for a question, and asks for more where they do not (paper, A.1)."""

    def identity(self) -> Mapping[str, Any]:
        """All that changes its requests: JSON-able."""
        ...

    def request(self, question: str, candidates: Sequence[Step]) -> Sequence[int]:
        """Indices of the steps wanted beside the candidates, none where these suffice; indices of no step are ignored."""
        ...


@dataclass(frozen=True)
class StepStore:
    """The steps of a trajectory by position, and a text index over their records."""

    steps: tuple[Step, ...]
    index: Bm25Index

    @cached_property
    def positions(self) -> Mapping[int, int]:
        """Position of every step index."""
        return {step.index: position for position, step in enumerate(self.steps)}

    @property
    def last_index(self) -> int:
        """Index of the last step; -1 where there is none."""
        return self.steps[-1].index if self.steps else -1

    def locate(self, indices: Iterable[int]) -> set[int]:
        """Positions of those indices that are steps."""
        return {self.positions[index] for index in indices if index in self.positions}


class TemporalMemory(MemoryStructure[StepStore]):
    """Step records in time order: those the question names, those a checker asks for, or else the best by lexical match.

    Args:
        selection: How many steps to return, and how steps beyond that are listed.
        bm25: How steps are ranked.
        max_chars_per_step: Longest record wanted in evidence, characters.
        checker: Asks for further steps; none by default.
    """

    code: ClassVar[str] = "T"
    name: ClassVar[str] = "temporal"

    def __init__(
        self,
        selection: TemporalSettings,
        bm25: Bm25Settings,
        max_chars_per_step: int,
        checker: SufficiencyChecker | None = None,
    ) -> None:
        self._selection = selection
        self._bm25 = bm25
        self._max_chars = max_chars_per_step
        self._checker = checker

    @classmethod
    def create(cls, context: StructureContext) -> Self:
        settings = context.settings
        return cls(settings.structures.temporal, settings.stores.bm25, settings.evidence.max_chars_per_step)

    def build_identity(self) -> Mapping[str, Any]:
        return {"version": VERSION, "tokenizer": self._bm25.tokenizer}

    def retrieve_identity(self) -> Mapping[str, Any]:
        return {
            "version": VERSION,
            "bm25": self._bm25.model_dump(),
            "selection": self._selection.model_dump(exclude={"checker", "max_requested"}),
            "max_chars_per_step": self._max_chars,
            "checker": self._checker and dict(self._checker.identity()),
        }

    def build(self, trajectory: Trajectory) -> StepStore:
        texts = [serialize_step(step).text for step in trajectory.steps]
        return StepStore(trajectory.steps, Bm25Index.build(texts, self._bm25))

    def retrieve(self, memory: StepStore, question: str) -> Evidence:
        references = parse_references(question, memory.last_index)
        exact = memory.locate(references.exact) | self._requested(memory, question)
        named = memory.locate(references.indices) | exact
        if not named:
            return self._evidence(memory, {match.position: match.score for match in self._lexical(memory, question)})
        if len(named) <= self._selection.max_steps:
            return self._evidence(memory, dict.fromkeys(named))
        scores = memory.index.scores(question)
        kept = select_steps(named, exact, _anchors(memory, references), scores, self._selection.max_steps)
        return self._evidence(memory, dict.fromkeys(kept), self._actions(memory, sorted(named)))

    def encode(self, memory: StepStore) -> StoredMemory:
        steps = [(step.index, step.action, step.observation) for step in memory.steps]
        return StoredMemory({"steps": steps, "index": memory.index.data}, memory.index.arrays)

    def decode(self, stored: StoredMemory) -> StepStore:
        steps = tuple(Step(*step) for step in stored.payload["steps"])
        return StepStore(steps, Bm25Index.restore(stored.payload["index"], stored.arrays, self._bm25))

    def _lexical(self, memory: StepStore, question: str) -> list[Match]:
        return [match for match in memory.index.search(question, self._selection.top_k) if match.score > 0]

    def _requested(self, memory: StepStore, question: str) -> set[int]:
        if self._checker is None:
            return set()
        candidates = [memory.steps[match.position] for match in self._lexical(memory, question)]
        return memory.locate(self._checker.request(question, candidates))

    def _evidence(self, memory: StepStore, chosen: Mapping[int, float | None], listing: EvidenceItem | None = None) -> Evidence:
        """Records of the chosen positions in time order, with their scores; after the listing of those left out, if any."""
        records = {position: serialize_step(memory.steps[position], self._max_chars) for position in sorted(chosen)}
        items = [
            EvidenceItem(record.text, (memory.steps[position].index,), chosen[position], is_record=True)
            for position, record in records.items()
        ]
        truncated = listing is not None or any(record.truncated for record in records.values())
        return Evidence(self.code, tuple([listing, *items] if listing else items), truncated)

    def _actions(self, memory: StepStore, named: Sequence[int]) -> EvidenceItem:
        """The actions alone, one line a step, of the last of the steps named: what a question about all of them counts."""
        listed = [memory.steps[position] for position in named[-self._selection.max_listed :]]
        lines = [f"{step.index}: {clip(step.action, self._selection.max_listed_chars).text}" for step in listed]
        return EvidenceItem("\n".join([ACTIONS_HEADING, *lines]), tuple(step.index for step in listed))


def _anchors(memory: StepStore, references: References) -> list[int]:
    """Positions of the steps that spans are counted from: the first of a suffix, the last of anything else."""
    spans = [reference for reference in references.found if reference.indices]
    ends = {span.indices[0] if span.kind == "suffix" else span.indices[-1] for span in spans}
    return sorted(memory.locate(ends))
