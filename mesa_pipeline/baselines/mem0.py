"""Mem0: single facts that a model adds, updates and deletes as the history goes on (paper, B.1; Chhikara et al. 2025)."""

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance, stored_vectors
from mesa_pipeline.baselines.environments import WorkerEnvironment
from mesa_pipeline.baselines.mem0_chunks import EPISODE, Chunk, cut_chunks
from mesa_pipeline.baselines.model_proxy import ModelProxy
from mesa_pipeline.baselines.texts import first_tokens
from mesa_pipeline.baselines.worker import Worker
from mesa_pipeline.config import Mem0Settings
from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.llm import Embedder, OpenChat, TokenCounter, vectors_for
from mesa_pipeline.llm.metering import note
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.structured import read_object
from mesa_pipeline.stores.embedded import RANKING_VERSION, ArrayVectorIndex
from mesa_pipeline.structures.base import StoredMemory
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 1
PROMPTS = Path(__file__).parent / "prompts"
EXTRACT, EXTRACT_SPEAKER, UPDATE = (
    Prompt.load(PROMPTS / f"mem0_{name}.md") for name in ("extract", "extract_speaker", "update")
)
PACKAGE = "mem0ai 1.0.11"


@dataclass(frozen=True)
class Facts:
    """What is left in the stores at the end of the history.

    Attributes:
        embedder: Name of the model that made the vectors.
        stores: Name of each fact's store.
        texts: The facts, oldest first within a store.
        steps: The steps of the chunk that each fact was last taken from.
        vectors: Shape ``(facts, dimensions)``, float32, L2-normalised.
    """

    embedder: str
    stores: tuple[str, ...]
    texts: tuple[str, ...]
    steps: tuple[tuple[int, ...], ...]
    vectors: np.ndarray


class Mem0(Baseline[Facts]):
    """The package builds; its search, ten nearest facts by cosine, is done here on the same vectors.

    Args:
        settings: Chunks, replies and limits.
        chat: Opens the model.
        embedder: Opens the embedding model.
        counter: Counts tokens.
        worker: The package; ``None`` where there is no place for its environment.
        scratch: Folder of the stores while they are built.
    """

    code: ClassVar[str] = "mem0"
    name: ClassVar[str] = "mem0"
    title: ClassVar[str] = "Mem0"
    query_model = "none"
    needs_embedder = True
    needs_model = True
    provenance = Provenance(
        source="Chhikara et al. 2025",
        package=PACKAGE,
        from_paper=(
            "a store for each episode; chunks of at most 10 steps or 40,000 characters",
            "facts extracted, 4,096 tokens a reply, then added, updated or deleted against the five nearest of each",
            "on-disk Qdrant, ten nearest facts a question, embedded texts of at most 20,000 tokens",
            "conversations: a store for each speaker, two turns at a time",
        ),
        choices=(
            "1.0.11, the last release of that algorithm; both prompts in our words, for histories of agents",
            "the stores are read out once built; the package's cosine search over the facts is done here; a test compares them",
            "a fact is said to be of the steps of the chunk that it was last taken from",
            "a session's time stands in its messages, from where facts take it, rather than in their metadata",
        ),
    )

    def __init__(
        self,
        settings: Mem0Settings,
        chat: OpenChat,
        embedder: Callable[[], Embedder],
        counter: TokenCounter,
        environments: Path | None,
        scratch: Path | None,
    ) -> None:
        self._settings = settings
        self._chat = chat
        self._embedder = embedder
        self._counter = counter
        self._environments = environments
        self._scratch = scratch

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        settings = context.settings.baselines.mem0
        return cls(settings, context.chat, context.embedder, context.counter, context.environments, context.scratch)

    def build_identity(self) -> Mapping[str, Any]:
        settings = self._settings.model_dump(exclude={"top_k", "seconds"})
        return {
            "version": VERSION,
            "package": PACKAGE,
            "model": self._chat("remember", None, self._settings.max_tokens).name,
            "embedder": self._embedder().name,
            "prompts": [prompt.fingerprint for prompt in (EXTRACT, EXTRACT_SPEAKER, UPDATE)],
            "settings": settings,
        }

    def retrieve_identity(self) -> Mapping[str, Any]:
        return {"version": VERSION, "ranking": RANKING_VERSION, "top_k": self._settings.top_k}

    def build(self, trajectory: Trajectory) -> Facts:
        """Have the package take the history, chunk after chunk.

        Raises:
            MissingDependency: Its environment was not made yet.
            ModelError: A model gave no reply.
            SystemFailure: The package failed.
        """
        chunks: dict[str, list[Chunk]] = defaultdict(list)
        for chunk in cut_chunks(trajectory, self._settings):
            chunks[chunk.store].append(chunk)
        found = [(store, fact) for store in chunks for fact in self._built(store, chunks[store], trajectory.id)]
        texts = tuple(fact["text"] for _, fact in found)
        steps = tuple(tuple(sorted(json.loads(fact["metadata"].get("steps", "[]")))) for _, fact in found)
        embedder = self._embedder()
        vectors = vectors_for(list(map(flat, texts)), embedder)
        return Facts(embedder.name, tuple(store for store, _ in found), texts, steps, vectors)

    def retrieve(self, memory: Facts, question: str) -> Evidence:
        if not memory.texts:
            return Evidence(self.code)
        query = self._embedder().embed([flat(question)])
        items: list[EvidenceItem] = []
        for store in dict.fromkeys(memory.stores):
            held = [n for n, name in enumerate(memory.stores) if name == store]
            (matches,) = ArrayVectorIndex(memory.vectors[held]).search(query, self._settings.top_k)
            for match in matches:
                position = held[match.position]
                items.append(EvidenceItem(memory.texts[position], memory.steps[position], match.score))
        return Evidence(self.code, tuple(items))

    def encode(self, memory: Facts) -> StoredMemory:
        payload = {
            "embedder": memory.embedder,
            "stores": list(memory.stores),
            "texts": list(memory.texts),
            "steps": [list(steps) for steps in memory.steps],
        }
        return StoredMemory(payload, {"vectors": memory.vectors})

    def decode(self, stored: StoredMemory) -> Facts:
        payload = stored.payload
        vectors = stored_vectors(stored, self._embedder())
        steps = tuple(map(tuple, payload["steps"]))
        return Facts(payload["embedder"], tuple(payload["stores"]), tuple(payload["texts"]), steps, vectors)

    def keep_only(self, memories: Iterable[Facts]) -> None:
        """Remove the stores of builds that were killed; of a whole one nothing is left but the memory."""
        if self._scratch is not None and self._stores.exists():
            shutil.rmtree(self._stores)

    def search_by_package(self, facts: Sequence[str], question: str) -> list[tuple[str, float]]:
        """What the package's own search finds among facts, with its scores; for comparing with."""
        with ModelProxy(self._model, self._embedder) as proxy:
            request = self._request(proxy, EPISODE, "search")
            with proxy.serving():
                found = self._worker.call("search", facts=list(facts), question=question, **request)
        return [(text, score) for text, score in found]

    def close(self) -> None:
        """End the package's process; the next use starts it again."""
        if "_worker" in self.__dict__:
            self._worker.close()

    def _built(self, store: str, chunks: Sequence[Chunk], episode: str) -> list[dict[str, Any]]:
        with ModelProxy(self._model, self._embedder) as proxy:
            request = self._request(proxy, store, episode)
            with proxy.serving(_count_unread):
                built = self._worker.call("build", chunks=[self._as_messages(chunk) for chunk in chunks], **request)
        for event, times in sorted(built["events"].items()):
            note(f"facts: {event.lower()}", times)
        return list(built["facts"])

    def _request(self, proxy: ModelProxy, store: str, episode: str) -> dict[str, Any]:
        return {
            "folder": str(self._stores / fingerprint("store", episode, store)[:16]),
            "store": store,
            "url": proxy.url,
            "key": proxy.key,
            "model": "model",
            "dimensions": self._embedder().dimensions,
            "max_tokens": self._settings.max_tokens,
            "limit": self._settings.top_k,
            "extraction_prompt": EXTRACT.text if store == EPISODE else EXTRACT_SPEAKER.fill(speaker=store),
            "update_prompt": UPDATE.text,
        }

    def _as_messages(self, chunk: Chunk) -> dict[str, Any]:
        limit = self._settings.embedded_tokens
        messages = [{"role": said.role, "content": first_tokens(said.text, limit, self._counter)} for said in chunk.messages]
        return {"messages": messages, "metadata": {"steps": json.dumps(chunk.steps)}}

    def _model(self) -> Any:
        return self._chat("remember", None, self._settings.max_tokens)

    @property
    def _folder(self) -> Path:
        if self._scratch is None:
            raise MissingDependency("Mem0 needs a folder for its stores, and none was given")
        return self._scratch.absolute() / self.name

    @property
    def _stores(self) -> Path:
        return self._folder / "stores"

    @cached_property
    def _worker(self) -> Worker:
        if self._environments is None:
            raise MissingDependency("Mem0 runs in an environment of its own, and no folder of environments was given")
        home = self._folder / "home"
        environment = WorkerEnvironment(self.name, self._environments)
        return Worker(environment, home, self._settings.seconds, {"MEM0_DIR": str(home)})


def flat(text: str) -> str:
    """The text as the package embeds it."""
    return text.replace("\n", " ")


def _count_unread(reply: str) -> None:
    """The package passes over replies that it cannot read."""
    if read_object(reply, ("facts", "memory")) is None:
        note("replies not understood")
