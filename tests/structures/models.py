"""Language models for tests of the structures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mesa_pipeline.llm import ChatModel, Completion, Message, OpenChat, Role
from mesa_pipeline.llm.cache import ReplyCache


def always(model: ChatModel) -> OpenChat:
    """The same model in every role."""

    def chat(role: Role, schema: Mapping[str, Any] | None = None) -> ChatModel:
        return model

    return chat


@dataclass(frozen=True)
class Remembering:
    """A model whose replies are kept and given again, as an endpoint's are."""

    model: ChatModel
    cache: ReplyCache

    @property
    def name(self) -> str:
        return self.model.name

    def complete(self, messages: Sequence[Message], seed: int = 0) -> Completion:
        request = {"model": self.name, "messages": [[message.role, message.content] for message in messages]}
        known = self.cache.get(request)
        if known is None:
            known = self.model.complete(messages, seed)
            self.cache.put(request, known)
        return known


@dataclass(frozen=True)
class Cut:
    """A model whose replies end at the longest reply allowed."""

    model: ChatModel

    @property
    def name(self) -> str:
        return self.model.name

    def complete(self, messages: Sequence[Message], seed: int = 0) -> Completion:
        whole = self.model.complete(messages, seed)
        return Completion(whole.text, whole.prompt_tokens, whole.completion_tokens, finish_reason="length")
