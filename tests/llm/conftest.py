"""An endpoint that misbehaves, and a client of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mesa_pipeline.config import ChatSettings, EmbeddingsSettings, Settings
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.llm.cache import ReplyCache
from mesa_pipeline.llm.endpoint import Endpoint
from mesa_pipeline.llm.ledger import Ledger, Spending
from mesa_pipeline.llm.openai_compatible import OpenAIChat, Sampling
from tests.llm.misbehaving_server import MisbehavingServer

QUICK = {"backoff_seconds": 0.01, "max_backoff_seconds": 0.02, "timeout_seconds": 60.0}


@dataclass(frozen=True)
class WordCounter:
    """A token is a word; ``per_word`` of them for a model that splits more finely."""

    per_word: int = 1
    name: str = "words"

    def count(self, text: str) -> int:
        return self.per_word * len(text.split())


@dataclass
class Pauses:
    """Stands in for sleeping, and tells how long it would have been."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@dataclass(frozen=True)
class Client:
    """An endpoint with what it writes and waits."""

    endpoint: Endpoint
    ledger: Ledger
    pauses: Pauses
    folder: Path

    def chat(self, counter: TokenCounter = WordCounter(), **sampling: Any) -> OpenAIChat:
        return OpenAIChat(self.endpoint, Sampling(**{"max_tokens": 64, **sampling}), "answer", counter)

    @property
    def spent(self) -> Spending:
        """On the one phase and model there is."""
        (spending,) = self.ledger.spending()
        return spending


OpenClient = Callable[..., Client]


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as server:
        yield server


@pytest.fixture
def chat_settings(settings: Settings, server: MisbehavingServer) -> ChatSettings:
    return settings.llm.chat.model_copy(update={**QUICK, "base_url": server.base_url})


@pytest.fixture
def embeddings_settings(settings: Settings, server: MisbehavingServer) -> EmbeddingsSettings:
    return settings.llm.embeddings.model_copy(update={**QUICK, "base_url": server.base_url})


@pytest.fixture
def open_client(chat_settings: ChatSettings, tmp_path: Path) -> OpenClient:
    """Opens clients on one cache and one ledger, with changed settings."""

    def open_client(key: str | None = None, sleep: Callable[[float], None] | None = None, **changed: Any) -> Client:
        ledger, pauses = Ledger(tmp_path / "llm" / "ledger.sqlite"), Pauses()
        cache = ReplyCache(tmp_path / "llm" / "replies.sqlite")
        endpoint = Endpoint(chat_settings.model_copy(update=changed), cache, ledger, key, sleep or pauses)
        return Client(endpoint, ledger, pauses, tmp_path)

    return open_client
