"""T: the step-indexed store, read by the steps a question names (paper, A.1, "Temporal Store (T) Memory")."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from mesa_pipeline.config import Bm25Settings, TemporalSettings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.llm import Embedder, vectors_for
from mesa_pipeline.llm.concurrency import map_concurrently
from mesa_pipeline.stores import Match
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.stores.embedded import RANKING_VERSION, ArrayVectorIndex
from mesa_pipeline.structures.base import MemoryStructure, StoredMemory, StructureContext
from mesa_pipeline.structures.records import clip, serialize_step
from mesa_pipeline.structures.step_references import parse_references
from mesa_pipeline.structures.step_selection import select_steps
from mesa_pipeline.structures.sufficiency import LlmSufficiencyChecker
from mesa_pipeline.types import Evidence, EvidenceItem, Step, Trajectory

VERSION = 1
ACTIONS_HEADING = "Actions of the steps named:"


class SufficiencyChecker(Protocol):
    """Judges whether retrieved steps suffice for a question, and asks for more where they do not (paper, A.1)."""

    def identity(self) -> Mapping[str, Any]:
        """All that changes its requests: JSON-able."""
        ...

    def request(self, question: str, candidates: Sequence[Step], known: range) -> Sequence[int]:
        """Indices of the steps wanted, the most wanted first; none where the candidates suffice.

        Args:
            question: The question.
            candidates: Steps to judge by, in time order, at least one.
            known: From the trajectory's first step to its last; an index of no step is ignored.

        Raises:
            ModelError: It cannot tell.
        """
        ...


@dataclass(frozen=True)
class Checking:
    """How further steps are asked for.

    Attributes:
        checker: Judges and asks.
        embedder: Opens the model that finds the steps to judge by, those most alike to the question.
        concurrency: Questions checked at a time.
    """

    checker: SufficiencyChecker
    embedder: Callable[[], Embedder]
    concurrency: int = 1


@dataclass(frozen=True)
class StepVectors:
    """One vector a step: the embedder's name, and float32 of shape ``(steps, dimensions)``."""

    embedder: str
    vectors: np.ndarray


@dataclass(frozen=True)
class StepStore:
    """The steps of a trajectory by position, a text index over their records and, for a checker, their vectors."""

    steps: tuple[Step, ...]
    index: Bm25Index
    vectors: StepVectors | None = None

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
        return set(self.ordered(indices))

    def ordered(self, indices: Iterable[int]) -> list[int]:
        """The same in the order of the indices, each once."""
        return list(dict.fromkeys(self.positions[index] for index in indices if index in self.positions))


class TemporalMemory(MemoryStructure[StepStore]):
    """Step records in time order: those the question names, those a checker asks for, or else the best by lexical match.

    Args:
        selection: How many steps to return, and how steps beyond that are listed.
        bm25: How steps are ranked.
        max_chars_per_step: Longest record wanted in evidence, characters.
        checking: How further steps are asked for; by default none are.
    """

    code: ClassVar[str] = "T"
    name: ClassVar[str] = "temporal"

    def __init__(
        self,
        selection: TemporalSettings,
        bm25: Bm25Settings,
        max_chars_per_step: int,
        checking: Checking | None = None,
    ) -> None:
        self._selection = selection
        self._bm25 = bm25
        self._max_chars = max_chars_per_step
        self._checking = checking

    @classmethod
    def create(cls, context: StructureContext) -> Self:
        settings = context.settings
        selection, max_chars = settings.structures.temporal, settings.evidence.max_chars_per_step
        checking = None
        if selection.checker == "llm":
            checker = LlmSufficiencyChecker(context.chat, selection.max_requested, max_chars)
            checking = Checking(checker, context.embedder, settings.llm.chat.max_concurrency)
        return cls(selection, settings.stores.bm25, max_chars, checking)

    def build_identity(self) -> Mapping[str, Any]:
        embedder = {"embedder": self._checking.embedder().name} if self._checking else {}
        return {"version": VERSION, "tokenizer": self._bm25.tokenizer, **embedder}

    def retrieve_identity(self) -> Mapping[str, Any]:
        return {
            "version": VERSION,
            "bm25": self._bm25.model_dump(),
            "selection": self._selection.model_dump(exclude={"checker", "max_requested"}),
            "max_chars_per_step": self._max_chars,
            "checker": self._checking and {**self._checking.checker.identity(), "ranking": RANKING_VERSION},
        }

    def build(self, trajectory: Trajectory) -> StepStore:
        texts = [serialize_step(step).text for step in trajectory.steps]
        return StepStore(trajectory.steps, Bm25Index.build(texts, self._bm25), self._vectors(texts))

    def retrieve(self, memory: StepStore, question: str) -> Evidence:
        return self.retrieve_many(memory, [question])[0]

    def retrieve_many(self, memory: StepStore, questions: Sequence[str]) -> list[Evidence]:
        """Evidence for each question; where a checker is asked, all questions are checked first.

        Raises:
            ModelError: Some questions could not be checked. None has evidence then, rather than some without the steps that a
                check would have added.
        """
        requests = self._requests(memory, questions)
        return [self._read(memory, question, wanted) for question, wanted in zip(questions, requests, strict=True)]

    @property
    def previews_evidence(self) -> bool:
        return self._checking is None

    def preview(self, memory: StepStore, question: str) -> Evidence:
        """Evidence without what a checker would ask for: a glimpse costs no request to a language model."""
        return self._read(memory, question, ())

    def _read(self, memory: StepStore, question: str, wanted: Sequence[int]) -> Evidence:
        references = parse_references(question, memory.last_index)
        exact, named = memory.locate(references.exact), memory.locate(references.indices)
        requested = [position for position in memory.ordered(wanted) if position not in named]
        requested = requested[: self._room(len(exact), len(named))]
        exact |= set(requested)
        named |= exact
        if not named:
            return self._evidence(memory, {match.position: match.score for match in self._lexical(memory, question)})
        if len(named) <= self._selection.max_steps:
            return self._evidence(memory, dict.fromkeys(named))
        scores = memory.index.scores(question)
        kept = select_steps(named, exact, sorted(memory.locate(references.anchors)), scores, self._selection.max_steps)
        return self._evidence(memory, dict.fromkeys(kept), self._actions(memory, sorted(named)))

    def encode(self, memory: StepStore) -> StoredMemory:
        steps = [(step.index, step.action, step.observation) for step in memory.steps]
        payload = {"steps": steps, "index": memory.index.data}
        if memory.vectors is None:
            return StoredMemory(payload, memory.index.arrays)
        arrays = {**memory.index.arrays, "vectors": memory.vectors.vectors}
        return StoredMemory({**payload, "embedder": memory.vectors.embedder}, arrays)

    def decode(self, stored: StoredMemory) -> StepStore:
        steps = tuple(Step(*step) for step in stored.payload["steps"])
        vectors = None
        if self._checking:
            made_with = str(stored.payload.get("embedder", "none"))
            _matching(self._checking.embedder(), made_with)
            vectors = StepVectors(made_with, np.asarray(stored.arrays["vectors"], dtype=np.float32))
        return StepStore(steps, Bm25Index.restore(stored.payload["index"], stored.arrays, self._bm25), vectors)

    def _lexical(self, memory: StepStore, question: str) -> list[Match]:
        return [match for match in memory.index.search(question, self._selection.top_k) if match.score > 0]

    def _vectors(self, texts: Sequence[str]) -> StepVectors | None:
        if self._checking is None:
            return None
        embedder = self._checking.embedder()
        return StepVectors(embedder.name, vectors_for(texts, embedder))

    def _requests(self, memory: StepStore, questions: Sequence[str]) -> list[Sequence[int]]:
        """What the checker asks for, question by question, in view of the steps most alike to each."""
        checking = self._checking
        if checking is None or memory.vectors is None or not memory.steps:
            return [()] * len(questions)
        queries = _matching(checking.embedder(), memory.vectors.embedder).embed(questions)
        found = ArrayVectorIndex(memory.vectors.vectors).search(queries, self._selection.top_k)
        known = range(memory.steps[0].index, memory.last_index + 1)

        def request(number: int) -> Sequence[int]:
            candidates = [memory.steps[position] for position in sorted(match.position for match in found[number])]
            return checking.checker.request(questions[number], candidates, known)

        return map_concurrently(request, range(len(questions)), checking.concurrency)

    def _room(self, exact: int, named: int) -> int:
        """Steps that may be added on request: those named one by one come first, and half the room stays for spans."""
        limit = self._selection.max_steps
        return max(limit - max(exact, min(named, limit // 2)), 0)

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


def _matching(embedder: Embedder, made_with: str) -> Embedder:
    if made_with != embedder.name:
        raise ArtifactError(
            f"this temporal memory was built with embedder {made_with!r} but llm.embedder is {embedder.name!r}; "
            "set it back, or build the memories again"
        )
    return embedder
