"""Chat models behind an OpenAI-compatible endpoint: one for each role, since each replies in its own way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.llm import Completion, Message, TokenCounter
from mesa_pipeline.llm.connection import ContextOverflow
from mesa_pipeline.llm.context_window import conversation_tokens, fit_conversation, room_once_refused
from mesa_pipeline.llm.endpoint import Endpoint
from mesa_pipeline.llm.ledger import Phase
from mesa_pipeline.llm.replies import valid_unicode
from mesa_pipeline.llm.troubles import overflow_of


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
        """Model and sampling, such as ``Qwen/Qwen3-32B (temperature 0, 512 of 32768 tokens, no thinking)``.

        The context is part of it, since what does not fit is cut.
        """
        settings, sampling = self.endpoint.settings, self.sampling
        parts = [f"temperature {sampling.temperature:g}", f"{sampling.max_tokens} of {settings.context_tokens} tokens"]
        if settings.chat_template_kwargs:
            parts.append("thinking" if settings.thinking else "no thinking")
        if self._schema is not None:
            parts.append(f"schema {fingerprint(self._schema)[:8]}")
        return f"{settings.model} ({', '.join(parts)})"

    def complete(self, messages: Sequence[Message], seed: int = 0) -> Completion:
        """The reply; a conversation too long for the context loses the middle of its longest message first.

        Where the server counts more tokens than we do it is shortened once more; the reply is kept for what was asked first.

        Raises:
            ModelError: No reply to this request.
            MissingDependency: The endpoint cannot be reached or refuses us.
        """
        fitted = fit_conversation(messages, self.counter, self.endpoint.settings.context_tokens - self.sampling.max_tokens)
        request = self._request(fitted, seed)
        try:
            return self.endpoint.complete(request, self.phase)
        except ContextOverflow as overflow:
            shorter = fit_conversation(fitted, self.counter, self._room(fitted, overflow))
        return self.endpoint.keep(request, self.endpoint.complete(self._request(shorter, seed), self.phase))

    def _room(self, refused: Sequence[Message], overflow: ContextOverflow) -> int:
        """Tokens, as we count them, of a conversation that the server has room for."""
        said = overflow_of(str(overflow))
        room = (said.limit or self.endpoint.settings.context_tokens) - self.sampling.max_tokens
        if room <= 0:
            raise overflow
        return room_once_refused(conversation_tokens(refused, self.counter), room, said.counted)

    @property
    def _schema(self) -> dict[str, Any] | None:
        """As it is sent."""
        schema = self.sampling.schema
        return dict(schema) if schema is not None and self.endpoint.settings.json_schema else None

    def _request(self, messages: Sequence[Message], seed: int) -> dict[str, Any]:
        settings = self.endpoint.settings
        request: dict[str, Any] = {
            "model": settings.model,
            "messages": [{"role": message.role, "content": valid_unicode(message.content)} for message in messages],
            "temperature": self.sampling.temperature,
            "max_tokens": self.sampling.max_tokens,
        }
        if self.sampling.temperature > 0:
            request["seed"] = seed % 2**31
        if settings.chat_template_kwargs:
            request["chat_template_kwargs"] = {"enable_thinking": settings.thinking}
        if self._schema is not None:
            schema = {"name": "reply", "schema": self._schema, "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        return request
