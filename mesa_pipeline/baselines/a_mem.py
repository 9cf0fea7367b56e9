"""A-Mem: linked notes that change as new ones come in (paper, B.1; Xu et al. 2026)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mesa_pipeline.baselines.a_mem_notes import (
    Heading,
    Note,
    frequent_words,
    read_changes,
    read_decision,
    read_names,
    read_numbers,
    read_sections,
)
from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance, stored_vectors
from mesa_pipeline.config import AmemSettings
from mesa_pipeline.llm import Embedder, OpenChat, Role
from mesa_pipeline.llm.metering import note as count
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.stores.embedded import RANKING_VERSION, ArrayVectorIndex
from mesa_pipeline.structures.base import StoredMemory
from mesa_pipeline.structures.llm_prompts import load_prompt, user_message
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Evidence, EvidenceItem, Step, Trajectory

VERSION = 1
PROMPTS = Path(__file__).parent / "prompts"
ANALYZE, DECIDE, STRENGTHEN, UPDATE, QUERY = (
    Prompt.load(PROMPTS / f"a_mem_{name}.md") for name in ("analyze", "decide", "strengthen", "update", "query")
)
ASKS_FOR_KEYWORDS = 2


@dataclass(frozen=True)
class Notes:
    """A trajectory as notes.

    Attributes:
        embedder: Name of the model that made the vectors.
        notes: One a step, in time order.
        vectors: Shape ``(notes, dimensions)``, float32, L2-normalised.
    """

    embedder: str
    notes: tuple[Note, ...]
    vectors: np.ndarray


class AMem(Baseline[Notes]):
    """Notes with keywords, context, tags and links; a question's keywords find notes, and the notes linked to them.

    Args:
        settings: Neighbours, notes and replies.
        chat: Opens the model.
        embedder: Opens the embedding model.
    """

    code: ClassVar[str] = "a_mem"
    name: ClassVar[str] = "a_mem"
    title: ClassVar[str] = "A-Mem"
    query_model = "once"
    needs_embedder = True
    needs_model = True
    provenance = Provenance(
        source="Xu et al. 2026, the robust variant",
        package=None,
        from_paper=(
            "a note for each step or turn, with keywords, context and tags by the backbone, at most 120,000 characters",
            "five nearest notes decide on links and on new descriptions of those notes",
            "all-MiniLM-L6-v2; question to keywords, ten notes with their linked notes, at most 120,000 characters",
            "1,000 tokens a reply, temperature 0",
        ),
        choices=(
            "replies are lines under headings; links outside the neighbours shown are dropped",
            "without keywords the model is asked once more, then frequent words stand in",
            "all notes are embedded again after every hundred that changed others, as in the authors' code, not before",
            "a linked note that is shown already is not repeated",
        ),
    )

    def __init__(self, settings: AmemSettings, chat: OpenChat, embedder: Callable[[], Embedder]) -> None:
        self._settings = settings
        self._chat = chat
        self._embedder = embedder

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        settings = context.settings.baselines.a_mem
        return cls(settings, context.chat, context.embedder_of(settings.embeddings))

    def build_identity(self) -> Mapping[str, Any]:
        prompts = [prompt.fingerprint for prompt in (ANALYZE, DECIDE, STRENGTHEN, UPDATE, load_prompt("reminder"))]
        settings = self._settings.model_dump(include={"neighbours", "note_chars", "embed_again_after", "max_tokens"})
        model, embedder = self._chat("remember", None, self._settings.max_tokens).name, self._embedder().name
        return {"version": VERSION, "model": model, "embedder": embedder, "prompts": prompts, "settings": settings}

    def retrieve_identity(self) -> Mapping[str, Any]:
        settings = self._settings.model_dump(include={"top_k", "evidence_chars", "max_tokens"})
        model = self._chat("recall", None, self._settings.max_tokens).name
        return {
            "version": VERSION,
            "ranking": RANKING_VERSION,
            "model": model,
            "prompts": [QUERY.fingerprint, load_prompt("reminder").fingerprint],
            "settings": settings,
        }

    def build(self, trajectory: Trajectory) -> Notes:
        """Take one note after the other.

        Raises:
            ModelError: The model gave no reply.
        """
        collection = _Collection(self._embedder())
        for step in trajectory.steps:
            self._take(step, collection)
        return Notes(collection.embedder.name, tuple(collection.notes), collection.vectors)

    def retrieve(self, memory: Notes, question: str) -> Evidence:
        """The notes that the question's keywords find, each followed by those linked to it.

        Raises:
            ModelError: The model gave no reply.
        """
        if not memory.notes:
            return Evidence(self.code)
        said = self._described("recall", QUERY.fill(question=question))
        keywords = read_names(said.get("KEYWORDS", ""))
        query = self._embedder().embed([", ".join(keywords) or question])
        (matches,) = ArrayVectorIndex(memory.vectors).search(query, self._settings.top_k)
        shown: dict[int, float] = {}
        for match in matches:
            for position in (match.position, *memory.notes[match.position].links):
                shown.setdefault(position, match.score)
        return self._evidence(memory.notes, shown)

    def encode(self, memory: Notes) -> StoredMemory:
        payload = {"embedder": memory.embedder, "notes": [note.record for note in memory.notes]}
        return StoredMemory(payload, {"vectors": memory.vectors})

    def decode(self, stored: StoredMemory) -> Notes:
        payload = stored.payload
        vectors = stored_vectors(stored, self._embedder())
        return Notes(payload["embedder"], tuple(map(Note.of_record, payload["notes"])), vectors)

    def _take(self, step: Step, collection: "_Collection") -> None:
        """Describe a step, let it be linked and change its neighbours, and add it."""
        content = serialize_step(step).text[: self._settings.note_chars]
        said = self._described("remember", ANALYZE.fill(content=content))
        keywords = read_names(said.get("KEYWORDS", "")) or frequent_words([content])
        evolutions = collection.evolutions
        note = Note(step.index, content, keywords, said.get("CONTEXT", ""), read_names(said.get("TAGS", "")))
        near = collection.nearest(content, self._settings.neighbours)
        if near:
            note = self._evolved(note, near, collection)
        collection.add(note)
        if collection.evolutions > evolutions and collection.evolutions % self._settings.embed_again_after == 0:
            collection.embed_again()

    def _evolved(self, note: Note, near: Sequence[int], collection: "_Collection") -> Note:
        """The note with its links; its neighbours are changed in the collection."""
        shown = {"note": note.text, "neighbours": _listed([collection.notes[position] for position in near])}
        decision = read_decision(self._say("remember", DECIDE.fill(**shown)))
        if decision is None:
            count("decisions not understood")
            return note
        if decision.strengthen:
            run = next(iter(read_sections(self._say("remember", STRENGTHEN.fill(**shown)))), {})
            links = tuple(near[number] for number in read_numbers(run.get("LINKS", ""), len(near)))
            note = replace(note, links=links, tags=read_names(run.get("TAGS", "")) or note.tags)
        if decision.update:
            for change in read_changes(self._say("remember", UPDATE.fill(**shown)), len(near)):
                position = near[change.neighbour]
                collection.notes[position] = change.of(collection.notes[position])
        collection.evolutions += decision.strengthen or decision.update
        return note

    def _described(self, role: Role, request: str) -> Mapping[Heading, str]:
        """What the model says under each heading; asked once more where it names no keywords."""
        said: Mapping[Heading, str] = {}
        for ask in range(ASKS_FOR_KEYWORDS):
            said = next(iter(read_sections(self._say(role, request, ask))), {})
            if read_names(said.get("KEYWORDS", "")):
                return said
            count("replies without keywords")
        return said

    def _say(self, role: Role, request: str, ask: int = 0) -> str:
        return self._chat(role, None, self._settings.max_tokens).complete([user_message(request, ask)], ask).text

    def _evidence(self, notes: Sequence[Note], shown: Mapping[int, float]) -> Evidence:
        """Notes until there is no room for the next."""
        items: list[EvidenceItem] = []
        room = self._settings.evidence_chars
        for position, score in shown.items():
            text = notes[position].text
            if len(text) > room:
                items += [EvidenceItem(text[:room], (notes[position].step,), score)] if room else []
                return Evidence(self.code, tuple(items), truncated=True)
            items.append(EvidenceItem(text, (notes[position].step,), score))
            room -= len(text)
        return Evidence(self.code, tuple(items))


class _Collection:
    """Notes as they come in, with vectors that lag behind their descriptions until all are embedded again."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.notes: list[Note] = []
        self.vectors = np.zeros((0, embedder.dimensions), dtype=np.float32)
        self.evolutions = 0

    def nearest(self, content: str, k: int) -> tuple[int, ...]:
        """Positions of the notes most alike to a text, best first."""
        if not self.notes:
            return ()
        (matches,) = ArrayVectorIndex(self.vectors).search(self.embedder.embed([content]), k)
        return tuple(match.position for match in matches)

    def add(self, note: Note) -> None:
        """Append a note."""
        self.notes.append(note)
        self.vectors = np.concatenate([self.vectors, self.embedder.embed([note.text])])

    def embed_again(self) -> None:
        """Bring all vectors up to what is said of the notes now."""
        self.vectors = self.embedder.embed([note.text for note in self.notes])


def _listed(notes: Sequence[Note]) -> str:
    return "\n\n".join(f"<neighbour {number}>\n{note.text}\n</neighbour>" for number, note in enumerate(notes))
