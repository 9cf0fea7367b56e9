"""What a piece of work asked of models, counted as it asks: requests, tokens, texts embedded.

Replies from the cache count like any others, with the tokens they once cost, so the cost of a system is the same whether its
requests were answered by the model or replayed. Money spent is what the ledger is for.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mesa_pipeline.llm import ChatModel, Completion, Embedder, Message, OpenChat, Role, TokenCounter


@dataclass(frozen=True)
class Cost:
    """What some work took.

    Attributes:
        seconds: Wall time.
        calls: Replies of language models.
        prompt_tokens: Of what they were sent, as the model counts them.
        completion_tokens: Of what they replied.
        embedded_texts: Texts turned into vectors.
        embedded_tokens: Of those texts, as the answer model counts them.
        notes: How often something worth counting happened, by its name, such as ``replies not understood``.
    """

    seconds: float = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    embedded_texts: int = 0
    embedded_tokens: int = 0
    notes: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.seconds + other.seconds,
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.embedded_texts + other.embedded_texts,
            self.embedded_tokens + other.embedded_tokens,
            dict(Counter(self.notes) + Counter(other.notes)),
        )


class Meter:
    """Adds up what is asked while it is the one in use, from any of the threads that work for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started = time.perf_counter()
        self._sum = Cost()

    @property
    def cost(self) -> Cost:
        """All until now."""
        return Cost(seconds=time.perf_counter() - self._started) + self._sum

    def add(self, cost: Cost) -> None:
        """Count something."""
        with self._lock:
            self._sum += cost


_METER: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[Meter]:
    """Count what this thread, and the threads of ``map_concurrently`` under it, ask for from here on."""
    meter = Meter()
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)


def note(name: str, times: int = 1) -> None:
    """Count an event of the work at hand; nothing where nobody counts."""
    _count(Cost(notes={name: times}))


@contextmanager
def in_turn(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock; the time spent waiting for others of this process who hold it is not what the work at hand takes."""
    started = time.perf_counter()
    with lock:
        _count(Cost(seconds=started - time.perf_counter()))
        yield


@dataclass(frozen=True)
class MeteredChat:
    """A language model whose replies are counted."""

    model: ChatModel

    @property
    def name(self) -> str:
        return self.model.name

    def complete(self, messages: Sequence[Message], seed: int = 0) -> Completion:
        """The model's reply; raises what the model raises."""
        reply = self.model.complete(messages, seed)
        _count(Cost(calls=1, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens))
        return reply


@dataclass(frozen=True)
class MeteredEmbedder:
    """An embedder whose texts are counted."""

    embedder: Embedder
    counter: TokenCounter

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """The embedder's vectors; raises what the embedder raises."""
        if _METER.get() is not None:
            _count(Cost(embedded_texts=len(texts), embedded_tokens=sum(map(self.counter.count, texts))))
        return self.embedder.embed(texts)


def metered_chat(open_chat: OpenChat) -> OpenChat:
    """Opens models whose replies are counted."""

    def opened(role: Role, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None) -> ChatModel:
        return MeteredChat(open_chat(role, schema, max_tokens))

    return opened


def metered_embedder(open_embedder: Callable[[], Embedder], counter: TokenCounter) -> Callable[[], Embedder]:
    """Opens an embedder whose texts are counted."""
    return lambda: MeteredEmbedder(open_embedder(), counter)


def _count(cost: Cost) -> None:
    meter = _METER.get()
    if meter is not None:
        meter.add(cost)
