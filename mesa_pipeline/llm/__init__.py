"""Models behind protocols: what the core asks of an embedder, of a token counter and of a language model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from mesa_pipeline.errors import MissingDependency


class Embedder(Protocol):
    """Turns texts into vectors.

    Two embedders with the same ``name`` give the same vectors for the same texts; a memory built with one name refuses to be
    queried with another.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """L2-normalised float32 vectors, shape ``(len(texts), dimensions)``; the zero vector only where a text has none."""
        ...


def vectors_for(texts: Sequence[str], embedder: Embedder) -> np.ndarray:
    """The texts' vectors, shape ``(len(texts), dimensions)``; ``(0, 0)`` for none, for which no embedder has to be there."""
    return embedder.embed(texts) if texts else np.zeros((0, 0), dtype=np.float32)


class TokenCounter(Protocol):
    """Counts tokens the way the answer model does; ``name`` is stamped on every outcome."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int: ...


@dataclass(frozen=True)
class Message:
    """One turn of a conversation; ``content`` is valid Unicode, without halves of surrogate pairs."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Completion:
    """A language model's reply.

    Attributes:
        text: Anything, also empty; valid Unicode.
        prompt_tokens: Of the conversation, as the model counts them.
        completion_tokens: Of the reply.
        cached_tokens: Of the conversation's, those that the server had in its prefix cache.
        finish_reason: ``stop``, or ``length`` for a reply that was cut.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    finish_reason: str = "stop"


Role = Literal["summarize", "extract", "check", "answer", "judge", "select", "propose", "remember", "recall"]
"""What a language model is asked to be: each role samples in its own way and is counted apart.

``remember`` and ``recall`` are those of the baselines: to build a memory, and to read it.
"""


class OpenChat(Protocol):
    """Opens the language model of a role.

    Replies obey a JSON schema, where one is given and the endpoint can enforce it, and are as long as the role's settings
    allow, or ``max_tokens``.
    """

    def __call__(self, role: Role, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None) -> "ChatModel": ...


class ChatModel(Protocol):
    """A language model that continues a conversation.

    ``name`` says all that a reply depends on beside messages and seed: the model and how it samples. Retries for a busy or
    failing endpoint are its own affair.
    """

    @property
    def name(self) -> str: ...

    def complete(self, messages: Sequence[Message], seed: int = 0) -> Completion:
        """The reply to a conversation that ends with the user's turn; the same for the same seed, as far as the model can.

        Args:
            messages: At most one system message, which comes first; then user and assistant in turn.
            seed: Seed of the sampling, any non-negative integer.

        Raises:
            ModelError: No reply to this request; a request with other messages may go well.
            MissingDependency: The model cannot be reached at all.
        """
        ...


def no_chat(role: Role, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None) -> ChatModel:
    """Where no language model was set up.

    Raises:
        MissingDependency: Always.
    """
    raise MissingDependency(f"the role {role!r} needs a language model, and none is set up here")
