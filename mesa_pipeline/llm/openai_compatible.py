"""Chat models behind an OpenAI-compatible endpoint: one for each role, since each replies in its own way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.llm import Completion, Message, TokenCounter
from mesa_pipeline.llm.context_window import fit_conversation
from mesa_pipeline.llm.endpoint import ContextOverflow, Endpoint
from mesa_pipeline.llm.ledger import Phase

OVERFLOW_SHARE = 0.8
"""Of the room for the conversation, once the server has counted more tokens than we did."""


@dataclass(frozen=True)
class Sampling:
    """How a model is to reply.

    Attributes:
        max_tokens: Longest reply.
        temperature: 0 for the likeliest reply.
        schema: JSON schema that the reply is to obey, where the endpoint can enforce one.
    """

    max_tokens: int
    temperature: float = 0.0
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class OpenAIChat:
    """A ``ChatModel`` behind an endpoint.

    Attributes:
        endpoint: Where it is.
        sampling: How it is to reply.
        phase: What its calls are for, in the ledger.
        counter: Counts tokens as the model does, or nearly: for fitting conversations into its context.
    """

    endpoint: Endpoint
    sampling: Sampling
    phase: Phase
    counter: TokenCounter

    @property
    def name(self) -> str:
        """Model and sampling, such as ``Qwen/Qwen3-32B (temperature 0, 512 tokens, no thinking)``."""
        settings, sampling = self.endpoint.settings, self.sampling
        parts = [f"temperature {sampling.temperature:g}", f"{sampling.max_tokens} tokens"]
        parts.append("thinking" if settings.thinking else "no thinking")
        if sampling.schema is not None:
            parts.append(f"schema {fingerprint(dict(sampling.schema))[:8]}")
        return f"{settings.model} ({', '.join(parts)})"

    def complete(self, messages: Sequence[Message], seed: int = 0) -> Completion:
        """The reply; a conversation too long for the context loses the middle of its longest message first.

        Raises:
            ModelError: No reply to this request.
            MissingDependency: The endpoint cannot be reached or refuses us.
        """
        room = self.endpoint.settings.context_tokens - self.sampling.max_tokens
        try:
            return self._ask(fit_conversation(messages, self.counter, room), seed)
        except ContextOverflow:
            return self._ask(fit_conversation(messages, self.counter, int(room * OVERFLOW_SHARE)), seed)

    def _ask(self, messages: Sequence[Message], seed: int) -> Completion:
        return self.endpoint.complete(self._request(messages, seed), self.phase)

    def _request(self, messages: Sequence[Message], seed: int) -> dict[str, Any]:
        settings = self.endpoint.settings
        request: dict[str, Any] = {
            "model": settings.model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": self.sampling.temperature,
            "max_tokens": self.sampling.max_tokens,
        }
        if self.sampling.temperature > 0:
            request["seed"] = seed % 2**31
        if not settings.thinking and settings.chat_template_kwargs:
            request["extra_body"] = {"chat_template_kwargs": {"enable_thinking": False}}
        if self.sampling.schema is not None and settings.json_schema:
            schema = {"name": "reply", "schema": dict(self.sampling.schema), "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        return request
