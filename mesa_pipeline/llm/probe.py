"""Asking an endpoint what it is: reachable, serving which models, with how much context, and does its prefix cache answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from mesa_pipeline.config import ChatSettings, EndpointSettings
from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.llm.replies import parse_reply, usage_of, vectors_of
from mesa_pipeline.llm.troubles import Trouble

LONG_PROMPT = "\n".join(f"Step {step}: the agent opens drawer {step % 7} and finds nothing in it." for step in range(60))
"""Longer than any block in which servers keep prefixes."""


@dataclass(frozen=True)
class Probe:
    """What an endpoint says of itself.

    Attributes:
        models: Those it serves.
        context_tokens: Most tokens of a request and its reply; ``None`` where it does not say.
    """

    models: tuple[str, ...]
    context_tokens: int | None


@dataclass(frozen=True)
class PrefixReuse:
    """What a chat endpoint had in its prefix cache of a prompt that it had read just before; tokens."""

    prompt_tokens: int
    cached_tokens: int


class EndpointProbe:
    """Asks one endpoint, without trying again.

    Args:
        settings: The model's name and how long to wait.
        url: Where the endpoint is.
        key: Its secret; ``None`` where it wants none.
    """

    def __init__(self, settings: EndpointSettings, url: str, key: str | None) -> None:
        self._settings = settings
        self._url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx2.Client(headers=headers, timeout=settings.timeout_seconds)

    def describe(self) -> Probe:
        """Models and context.

        Raises:
            MissingDependency: It cannot be reached, or refuses us.
        """
        listed = [entry for entry in _list(self._get("/models").get("data")) if isinstance(entry, dict)]
        models = tuple(str(entry.get("id")) for entry in listed)
        ours = next((entry for entry in listed if entry.get("id") == self._settings.model), listed[0] if listed else {})
        meta = ours.get("meta")
        stated = (ours.get("max_model_len"), meta.get("n_ctx") if isinstance(meta, dict) else None)  # of vLLM, of llama.cpp
        return Probe(models, next((tokens for tokens in stated if isinstance(tokens, int)), None))

    def prefix_reuse(self, chat: ChatSettings) -> PrefixReuse:
        """Say the same long prompt twice.

        Raises:
            MissingDependency: No reply.
        """
        body: dict[str, Any] = {
            "model": chat.model,
            "messages": [{"role": "user", "content": LONG_PROMPT}],
            "max_tokens": 1,
            "temperature": 0.0,
        }
        self._post("/chat/completions", body)
        usage = usage_of(self._post("/chat/completions", body))
        return PrefixReuse(usage.prompt_tokens, usage.cached_tokens)

    def dimensions(self) -> int:
        """Length of an embedding.

        Raises:
            MissingDependency: It gives none.
        """
        body = {"model": self._settings.model, "input": ["ready?"], "encoding_format": "float"}
        vectors = vectors_of(self._post("/embeddings", body), count=1)
        if isinstance(vectors, Trouble):
            raise MissingDependency(f"{self._url} gives no embeddings: {vectors.message}")
        return int(vectors.shape[1])

    def _get(self, path: str) -> Mapping[str, Any]:
        return self._asked("GET", path, None)

    def _post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._asked("POST", path, body)

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
        try:
            response = self._client.request(method, self._url + path, json=body)
        except httpx2.HTTPError as error:
            reason = f"{self._url} cannot be reached ({type(error).__name__}); start it, or correct its base_url"
            raise MissingDependency(reason) from error
        if response.is_error:
            raise MissingDependency(f"{self._url}{path} answers {response.status_code}; check the model and the key")
        return parse_reply(response.text)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
