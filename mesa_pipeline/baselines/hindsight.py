"""Hindsight: facts about the world and about what was done, recalled four ways at once (paper, B.1; Latimer et al. 2025)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance
from mesa_pipeline.baselines.environments import WorkerEnvironment
from mesa_pipeline.baselines.hindsight_documents import documents_of
from mesa_pipeline.baselines.model_proxy import ModelProxy
from mesa_pipeline.baselines.passages import Passage
from mesa_pipeline.baselines.worker import Worker
from mesa_pipeline.config import HindsightSettings
from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.llm import ChatModel, Embedder, OpenChat
from mesa_pipeline.llm.metering import note
from mesa_pipeline.llm.structured import read_object
from mesa_pipeline.structures.base import StoredMemory
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 4
PACKAGE = "hindsight-api-slim 1.1.0"
EPOCH = datetime.fromisoformat("2000-01-01T00:00:00+00:00")
"""When every history begins, so that nothing depends on the day it is read."""

FACTS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {
                    "what": {"type": "string", "maxLength": 120},
                    "fact_type": {"enum": ["world", "assistant"]},
                    "entities": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 30}},
                },
                "required": ["what", "fact_type", "entities"],
            },
        }
    },
    "required": ["facts"],
}
"""What a model that keeps to no format may reply: of the package's own schema what a fact needs, and little of it."""


@dataclass(frozen=True)
class Bank:
    """Where the package keeps an episode.

    Attributes:
        name: Of the bank.
        facts: How many it holds.
        documents: Steps of each document, by position; a document's id is its position.
        truncated: Whether the middle of the history was left out.
    """

    name: str
    facts: int
    documents: tuple[tuple[int, ...], ...]
    truncated: bool


class Hindsight(Baseline[Bank]):
    """The package retains and recalls; a memory says which of its banks is meant, and the bank lies in its own database.

    Args:
        settings: Documents, recall and limits.
        chat: Opens the model.
        embedder: Opens the embedding model.
        environments: Folder of worker environments.
        scratch: Folder of what the package stores.
    """

    code: ClassVar[str] = "hindsight"
    name: ClassVar[str] = "hindsight"
    title: ClassVar[str] = "Hindsight"
    query_model = "none"
    needs_embedder = True
    needs_model = True
    provenance = Provenance(
        source="Latimer et al. 2025",
        package=PACKAGE,
        from_paper=(
            "a bank for each episode, documents of at most 4,000 characters, histories over 120,000 cut in the middle",
            "world and experience facts; semantic, keyword, graph and temporal search fused by reciprocal rank",
            "conversations: a bank for each, a document for each session",
            "high recall budget, 8,192 tokens recalled; no observations, no mental models",
        ),
        choices=(
            "fused ranks without a cross-encoder, whose weights cannot be had: baselines.hindsight.reranker names a server",
            "the embedder of the settings for Qwen3-Embedding-4B",
            "recalled facts stand in time order: by rank, equal ones would change places when a bank is built again",
            "every history begins on 1 January 2000, a minute a document: recency is measured from there, not from today",
        ),
    )

    def __init__(
        self,
        settings: HindsightSettings,
        chat: OpenChat,
        embedder: Callable[[], Embedder],
        environments: Path | None,
        scratch: Path | None,
    ) -> None:
        self._settings = settings
        self._chat = chat
        self._embedder = embedder
        self._environments = environments
        self._scratch = scratch
        self._proxy = ModelProxy(self._model, embedder)

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        settings = context.settings.baselines.hindsight
        return cls(settings, context.chat, context.embedder, context.environments, context.scratch)

    def build_identity(self) -> Mapping[str, Any]:
        return {
            "version": VERSION,
            "package": PACKAGE,
            "model": self._model().name,
            "embedder": self._embedder().name,
            "settings": self._settings.model_dump(exclude={"recall_tokens", "reranker", "seconds"}),
        }

    def retrieve_identity(self) -> Mapping[str, Any]:
        settings = self._settings
        return {"version": VERSION, "recall_tokens": settings.recall_tokens, "reranker": settings.reranker.model}

    def build(self, trajectory: Trajectory) -> Bank:
        """Have the package retain the history.

        Raises:
            MissingDependency: Its environment was not made yet.
            ModelError: A model gave no reply.
            SystemFailure: The package failed.
        """
        documents = documents_of(trajectory, self._settings)
        passages, task = documents.passages, trajectory.task
        name = fingerprint("bank", dict(self.build_identity()), trajectory.id, task, [p.text for p in passages])[:24]
        if not passages:
            return Bank(name, 0, (), documents.truncated)
        listed = [_document(position, passage) for position, passage in enumerate(passages)]
        with self._proxy.serving(_count_unread):
            self._notes.mkdir(parents=True, exist_ok=True)
            (self._notes / name).touch()  # before there is a bank, so that none is ever without a note
            retained = self._worker.call("retain", bank=name, task=task, documents=listed)
        return Bank(name, retained["facts"], tuple(passage.steps for passage in passages), documents.truncated)

    def retrieve(self, memory: Bank, question: str) -> Evidence:
        """What the package recalls.

        Raises:
            MissingDependency: Its environment was not made yet.
            SystemFailure: The package failed, or its bank is not what was retained.
        """
        if not memory.facts or not question.strip():
            return Evidence(self.code)
        asked_at = _date(len(memory.documents))
        limits = {"max_tokens": self._settings.recall_tokens, "facts": memory.facts}
        with self._proxy.serving():
            recalled = self._worker.call("recall", bank=memory.name, question=question, date=asked_at, **limits)
        items = (EvidenceItem(fact["text"], _steps(memory, fact["document"])) for fact in recalled if fact["text"])
        in_time = sorted(items, key=lambda item: (item.steps, item.text))
        return Evidence(self.code, tuple(in_time), memory.truncated)

    def keep_only(self, memories: Iterable[Bank]) -> None:
        """Delete the banks of no memory: of episodes that are gone, were changed, or whose build was killed.

        Raises:
            ArtifactError: A memory cannot be read; nothing was deleted.
            MissingDependency: The package's environment is there no more.
            SystemFailure: The package failed; what it deleted stays deleted.
        """
        noted = {note.name for note in self._notes.glob("*")} if self._scratch else set()
        if not noted:
            return
        for name in sorted(noted - {memory.name for memory in memories}):
            with self._proxy.serving():
                self._worker.call("forget", bank=name)
            (self._notes / name).unlink()

    def encode(self, memory: Bank) -> StoredMemory:
        documents = [list(steps) for steps in memory.documents]
        payload = {"name": memory.name, "facts": memory.facts, "documents": documents, "truncated": memory.truncated}
        return StoredMemory(payload)

    def decode(self, stored: StoredMemory) -> Bank:
        payload = stored.payload
        return Bank(payload["name"], payload["facts"], tuple(map(tuple, payload["documents"])), payload["truncated"])

    def close(self) -> None:
        """End the package's process and its database; the next use starts them again."""
        if "_worker" in self.__dict__:
            self._worker.close()

    def _model(self) -> ChatModel:
        return self._chat("remember", FACTS_SCHEMA if self._settings.constrained else None, self._settings.max_tokens)

    @property
    def _home(self) -> Path:
        if self._scratch is None:
            raise MissingDependency("Hindsight needs a folder for its database, and none was given")
        return self._scratch.absolute() / self.name

    @property
    def _notes(self) -> Path:
        """Holds an empty file for each bank that the database may have."""
        return self._home / "banks"

    @cached_property
    def _worker(self) -> Worker:
        """The package; first used by one thread, whose turn it is."""
        if self._environments is None:
            raise MissingDependency("Hindsight runs in an environment of its own, and no folder of environments was given")
        self._proxy.__enter__()
        environment = WorkerEnvironment(self.name, self._environments)
        return Worker(environment, self._home, self._settings.seconds, self._variables())

    def _variables(self) -> dict[str, str]:
        """How the package is set up: our models, and nothing that calls out."""
        reranker = self._settings.reranker.base_url
        api = {
            "LLM_PROVIDER": "openai",
            "LLM_BASE_URL": self._proxy.url,
            "LLM_API_KEY": self._proxy.key,
            "LLM_MODEL": "model",
            "LLM_TEMPERATURE_RETAIN": "0",
            "LLM_MAX_RETRIES": "0",
            "LLM_TIMEOUT": str(self._settings.seconds),  # our own client knows when to give up
            "SKIP_LLM_VERIFICATION": "true",
            "EMBEDDINGS_PROVIDER": "openai",
            "EMBEDDINGS_OPENAI_BASE_URL": self._proxy.url,
            "EMBEDDINGS_OPENAI_API_KEY": self._proxy.key,
            "EMBEDDINGS_OPENAI_MODEL": "embedder",
            "RERANKER_PROVIDER": "rrf",
            **({"RERANKER_PROVIDER": "tei", "RERANKER_TEI_URL": reranker} if reranker else {}),
            "ENABLE_OBSERVATIONS": "false",
            "ENABLE_AUTO_CONSOLIDATION": "false",
            "RETAIN_MAX_COMPLETION_TOKENS": str(self._settings.max_tokens),
            "RETAIN_CHUNK_SIZE": str(self._settings.chunk_chars),
            "RECALL_MAX_QUERY_TOKENS": "0",
            "OTEL_TRACES_ENABLED": "false",
            "LLM_TRACE_ENABLED": "false",  # it would keep prompts and replies, also of banks that are deleted
            "AUDIT_LOG_ENABLED": "false",
            "WORKER_ENABLED": "false",
        }
        return {f"HINDSIGHT_API_{name}": value for name, value in api.items()}


def _document(position: int, passage: Passage) -> dict[str, str]:
    return {"id": str(position), "text": passage.text, "date": _date(position)}


def _date(position: int) -> str:
    return (EPOCH + timedelta(minutes=position)).isoformat()


def _steps(memory: Bank, document: str | None) -> tuple[int, ...]:
    known = document is not None and document.isdigit() and int(document) < len(memory.documents)
    return memory.documents[int(document)] if known and document else ()


def _count_unread(reply: str) -> None:
    """The package tries again, or passes over, what it cannot read."""
    if read_object(reply, ("facts",)) is None:
        note("replies not understood")
