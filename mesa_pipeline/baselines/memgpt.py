"""MemGPT: a model that pages through an archive by searching it (paper, B.1; Packer et al. 2023)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance, stored_vectors
from mesa_pipeline.baselines.passages import BREAK, Passage, as_records, from_records, packed
from mesa_pipeline.config import MemgptSettings
from mesa_pipeline.llm import ChatModel, Embedder, Message, OpenChat, vectors_for
from mesa_pipeline.llm.metering import note
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.structured import read_object
from mesa_pipeline.stores.embedded import RANKING_VERSION, ArrayVectorIndex
from mesa_pipeline.structures.base import StoredMemory
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 1
PROMPTS = Path(__file__).parent / "prompts"
OPENING, FOUND, MALFORMED, FORCED = (
    Prompt.load(PROMPTS / f"{name}.md") for name in ("memgpt", "memgpt_found", "memgpt_malformed", "memgpt_forced")
)
NO_TASK = "(a conversation; there is no task)"
NOTHING_FOUND = "(nothing)"


@dataclass(frozen=True)
class Archive:
    """The two tiers: what is always in the prompt, and what is searched.

    Attributes:
        core: The task.
        is_dialogue: Whether the trajectory is a conversation.
        embedder: Name of the model that made the vectors.
        passages: The whole history, in time order.
        vectors: Shape ``(passages, dimensions)``, float32, L2-normalised.
    """

    core: str
    is_dialogue: bool
    embedder: str
    passages: tuple[Passage, ...]
    vectors: np.ndarray


class Action(NamedTuple):
    """What the model wants: ``search`` for the text, or ``answer`` with it."""

    name: str
    text: str


@dataclass
class _Session:
    """One question's conversation with the model, and the passages it has turned up, in that order."""

    messages: list[Message]
    found: dict[int, float] = field(default_factory=dict)
    searches: int = 0
    malformed: int = 0

    def say(self, text: str) -> None:
        """Put something to the model; what it was told just before stands in the same turn."""
        if self.messages[-1].role == "user":
            text = f"{self.messages.pop().content}{BREAK}{text}"
        self.messages.append(Message("user", text))


class MemGpt(Baseline[Archive]):
    """A loop of searches until the model answers; the passages it saw are the evidence, its answer the draft.

    Args:
        settings: Passages, searches and replies.
        chat: Opens the model.
        embedder: Opens the embedding model.
    """

    code: ClassVar[str] = "memgpt"
    name: ClassVar[str] = "memgpt"
    title: ClassVar[str] = "MemGPT"
    query_model = "loop"
    needs_embedder = True
    needs_model = True
    provenance = Provenance(
        source="Packer et al. 2023",
        package=None,
        from_paper=(
            "the task in core memory, the whole trajectory in an archive of passages of at most 1,500 characters",
            "cosine similarity, five passages a search, at most 8,000 characters of them shown",
            "at most five searches, 512 tokens a reply (256 on conversations), temperature 0, then a forced answer",
            "the archive does not change while questions are asked",
        ),
        choices=(
            "actions are JSON objects rather than tool calls, so that any endpoint will do",
            "a reply that is no action is sent back once; the second one ends the search",
            "the passages seen go to the common reader; the model's own answer is kept beside them",
        ),
    )

    def __init__(self, settings: MemgptSettings, chat: OpenChat, embedder: Callable[[], Embedder]) -> None:
        self._settings = settings
        self._chat = chat
        self._embedder = embedder

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        return cls(context.settings.baselines.memgpt, context.chat, context.embedder)

    def build_identity(self) -> Mapping[str, Any]:
        return {"version": VERSION, "embedder": self._embedder().name, "passage_chars": self._settings.passage_chars}

    def retrieve_identity(self) -> Mapping[str, Any]:
        prompts = [prompt.fingerprint for prompt in (OPENING, FOUND, MALFORMED, FORCED)]
        settings = self._settings.model_dump(exclude={"passage_chars"})
        return {
            "version": VERSION,
            "ranking": RANKING_VERSION,
            "model": self._model(False).name,
            "prompts": prompts,
            "settings": settings,
        }

    def build(self, trajectory: Trajectory) -> Archive:
        passages, embedder = packed(trajectory.steps, self._settings.passage_chars), self._embedder()
        vectors = vectors_for([passage.text for passage in passages], embedder)
        return Archive(trajectory.task, trajectory.kind == "dialogue", embedder.name, passages, vectors)

    def retrieve(self, memory: Archive, question: str) -> Evidence:
        """What the model's searches showed it.

        Raises:
            ModelError: The model gave no reply.
        """
        if not memory.passages:
            return Evidence(self.code)
        opening = OPENING.fill(task=memory.core or NO_TASK, max_searches=self._settings.max_searches, question=question)
        session = _Session([Message("user", opening)])
        draft = self._converse(memory, session)
        items = (
            EvidenceItem(memory.passages[position].text, memory.passages[position].steps, score)
            for position, score in session.found.items()
        )
        return Evidence(self.code, tuple(items), draft=draft)

    def encode(self, memory: Archive) -> StoredMemory:
        payload = {
            "core": memory.core,
            "is_dialogue": memory.is_dialogue,
            "embedder": memory.embedder,
            "passages": as_records(memory.passages),
        }
        return StoredMemory(payload, {"vectors": memory.vectors})

    def decode(self, stored: StoredMemory) -> Archive:
        payload = stored.payload
        vectors = stored_vectors(stored, self._embedder())
        return Archive(payload["core"], payload["is_dialogue"], payload["embedder"], from_records(payload["passages"]), vectors)

    def _converse(self, memory: Archive, session: _Session) -> str | None:
        """Let the model search until it answers, or has to."""
        model = self._model(memory.is_dialogue)
        while session.searches < self._settings.max_searches:
            action = self._next_action(model, session)
            if action is None and session.malformed > 1:
                break
            if action is None:
                session.say(MALFORMED.text)
            elif action.name == "answer":
                return action.text
            else:
                self._search(memory, action.text, session)
        note("forced answers")
        session.say(FORCED.text)
        action = self._next_action(model, session)
        return action.text if action is not None and action.name == "answer" else None

    def _next_action(self, model: ChatModel, session: _Session) -> Action | None:
        reply = model.complete(session.messages).text
        session.messages.append(Message("assistant", reply))
        action = read_action(reply)
        if action is None:
            session.malformed += 1
            note("replies that are no action")
        return action

    def _search(self, memory: Archive, query: str, session: _Session) -> None:
        session.searches += 1
        note("searches")
        (matches,) = ArrayVectorIndex(memory.vectors).search(self._embedder().embed([query]), self._settings.top_k)
        for match in matches:
            session.found.setdefault(match.position, match.score)
        shown = BREAK.join(memory.passages[match.position].text for match in matches)[: self._settings.shown_chars]
        values = {"number": session.searches, "max_searches": self._settings.max_searches}
        session.say(FOUND.fill(passages=shown or NOTHING_FOUND, **values))

    def _model(self, is_dialogue: bool) -> ChatModel:
        settings = self._settings
        return self._chat("recall", None, settings.dialogue_max_tokens if is_dialogue else settings.max_tokens)


def read_action(reply: str) -> Action | None:
    """The action in a reply; ``None`` where there is none that is whole."""
    found = read_object(reply, ("action",))
    if found is None:
        return None
    name = found.get("action")
    text = found.get("query" if name == "search" else "answer")
    return Action(name, text) if name in ("search", "answer") and isinstance(text, str) and text.strip() else None
