"""Models: embedders, endpoints and the roles that language models play."""

from typing import Annotated

from pydantic import Field, model_validator

from mesa_pipeline.config.section import Positive, PositiveFloat, Section

ENDPOINT = "endpoint"
"""As ``llm.embedder``: the model of ``llm.embeddings``."""
LOCAL = "local://"
"""As ``base_url``: the process itself serves the model."""


class EndpointSettings(Section):
    base_url: Annotated[str, Field(pattern=r"^(https?://[^\s@?#]+|local://)$")]  # no place for a secret
    model: str
    key_variable: str
    context_tokens: Annotated[int, Field(ge=256)]
    max_concurrency: Positive
    timeout_seconds: PositiveFloat
    max_attempts: Positive
    backoff_seconds: Annotated[float, Field(ge=0)]
    max_backoff_seconds: Annotated[float, Field(ge=0)]


class ChatSettings(EndpointSettings):
    thinking: bool
    chat_template_kwargs: bool
    json_schema: bool


class EmbeddingsSettings(EndpointSettings):
    batch_size: Positive


class LocalSettings(Section):
    threads: Positive
    prompt_cache_mb: Annotated[int, Field(ge=0)]


class RoleSettings(Section):
    max_tokens: Positive
    temperature: Annotated[float, Field(ge=0.0, le=2.0)]


class RolesSettings(Section):
    summarize: RoleSettings
    extract: RoleSettings
    check: RoleSettings
    answer: RoleSettings
    judge: RoleSettings
    select: RoleSettings
    propose: RoleSettings
    remember: RoleSettings
    recall: RoleSettings


class LlmSettings(Section):
    tokenizer: str
    embedder: str
    embedder_threads: Positive
    embedder_batch_size: Positive
    chat: ChatSettings
    embeddings: EmbeddingsSettings
    local: LocalSettings
    roles: RolesSettings

    @property
    def embedder_name(self) -> str:
        """The embedding model, wherever it runs."""
        return self.embeddings.model if self.embedder == ENDPOINT else self.embedder

    @model_validator(mode="after")
    def _replies_leave_room(self) -> "LlmSettings":
        for role, settings in self.roles:
            if settings.max_tokens >= self.chat.context_tokens:
                raise ValueError(
                    f"roles.{role}.max_tokens ({settings.max_tokens}) leaves no room for a conversation "
                    f"in chat.context_tokens ({self.chat.context_tokens})"
                )
        return self
