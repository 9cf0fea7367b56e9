"""Requests to an OpenAI-compatible endpoint, with the patience that real ones need.

Every request waits for its turn among those in flight, is tried again after trouble that passes, and is written into the ledger
attempt by attempt. The endpoint's secret is sent to the endpoint and stands nowhere else.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import httpx2
from openai import APIError, APIStatusError, OpenAI

from mesa_pipeline.config import EndpointSettings
from mesa_pipeline.errors import ConfigError, MissingDependency, ModelError, Unreachable
from mesa_pipeline.llm.deadline import CONNECT_SECONDS, DeadlineTransport
from mesa_pipeline.llm.ledger import Attempt, Ledger, Phase, Usage
from mesa_pipeline.llm.replies import parse_reply, usage_of, valid_unicode
from mesa_pipeline.llm.troubles import Trouble, trouble_of

NO_KEY = "none"
HIDDEN_KEY = "[key]"
MIN_SECRET_CHARS = 12
"""A shorter key, such as ``EMPTY``, is a word that a reply may hold."""
MAX_MESSAGE_CHARS = 300
RETRIED = frozenset({"passing", "unreachable"})
R = TypeVar("R")

Locate = Callable[[EndpointSettings], str]
"""Says at which URL an endpoint is."""

logger = logging.getLogger(__name__)


def stated_url(settings: EndpointSettings) -> str:
    """The URL that the settings have."""
    return settings.base_url


class ContextOverflow(ModelError):
    """The endpoint says that the request is longer than the model's context; the message is what it said."""


@dataclass(frozen=True)
class Request:
    """What is asked of an endpoint.

    Attributes:
        path: Such as ``/chat/completions``.
        body: What is sent as JSON; names the model.
        key: Fingerprint of all that changes the reply.
        phase: What it is for, in the ledger.
    """

    path: str
    body: Mapping[str, Any]
    key: str
    phase: Phase


class Connection:
    """An endpoint's side of the conversation; any number of threads may share it.

    Args:
        settings: Where it is, how many requests at once and how patient to be.
        ledger: Where attempts are written down.
        key: Its secret; ``None`` where it wants none.
        sleep: Waits a number of seconds.
        locate: Asked for the URL before the first request.

    Raises:
        ConfigError: The secret holds what no HTTP header can.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        ledger: Ledger,
        key: str | None,
        sleep: Callable[[float], None] = time.sleep,
        locate: Locate = stated_url,
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._key = (key or "").strip()
        self._sleep = sleep
        self._locate = locate
        self._in_flight = threading.BoundedSemaphore(settings.max_concurrency)
        if not (self._key.isascii() and self._key.isprintable()):
            raise ConfigError(f"the secret in {settings.key_variable} holds a character that no HTTP header can")

    def ask(self, request: Request, read: Callable[[Mapping[str, Any]], R | Trouble]) -> R:
        """Send a request until it brings a reply, within the settings' patience.

        Args:
            request: What to send.
            read: Makes of the JSON object replied what is wanted, or says what is wrong with it.

        Raises:
            ContextOverflow: The request is too long.
            ModelError: No reply to this request, also after trying again.
            MissingDependency: The endpoint cannot be reached or refuses us; says what to do.
        """
        attempt = 0
        while True:
            attempt += 1
            outcome = self._attempt(request, read)
            if not isinstance(outcome, Trouble):
                return outcome
            if outcome.kind not in RETRIED or attempt == self._settings.max_attempts:
                raise self._error(outcome, attempt)
            pause = self._pause(request, attempt, outcome)
            logger.info("%s: %s; attempt %d follows in %.1f s", self._place, outcome.message, attempt + 1, pause)
            self._sleep(pause)

    def _attempt(self, request: Request, read: Callable[[Mapping[str, Any]], R | Trouble]) -> R | Trouble:
        reply: Mapping[str, Any] = {}
        outcome: R | Trouble
        with self._in_flight:
            started = time.perf_counter()
            try:
                response = self._client.post(request.path, cast_to=httpx2.Response, body=dict(request.body))
                reply = parse_reply(self._text(response))
                outcome = read(reply) if reply else Trouble("passing", "a reply that is cut, or no JSON object")
            except APIError as error:
                if isinstance(error, APIStatusError):
                    reply = parse_reply(self._text(error.response))
                outcome = trouble_of(error)
            seconds = time.perf_counter() - started
        if isinstance(outcome, Trouble):
            outcome = replace(outcome, message=self._shown(outcome.message))
        self._record(request, outcome, seconds, usage_of(reply))
        return outcome

    def _record(self, request: Request, outcome: object, seconds: float, usage: Usage) -> None:
        said = f"{outcome.kind}: {outcome.message}" if isinstance(outcome, Trouble) else "ok"
        self._ledger.record(Attempt(request.phase, self._settings.model, request.key, said, seconds, usage))

    def _error(self, trouble: Trouble, attempts: int) -> ModelError | MissingDependency:
        if trouble.kind == "unreachable":
            return Unreachable(f"{self._place} cannot be reached ({trouble.message}); start it, or correct its base_url")
        if trouble.kind == "refused":
            return MissingDependency(f"{self._place} refuses the request ({trouble.message}); check the model and the key")
        if trouble.kind == "overflow":
            return ContextOverflow(trouble.message)
        return ModelError(f"{trouble.message}, {attempts} times" if attempts > 1 else trouble.message)

    def _pause(self, request: Request, attempt: int, trouble: Trouble) -> float:
        """Seconds to wait: twice as long each time, spread so that not all return at once, and as long as the endpoint asks."""
        longest = self._settings.max_backoff_seconds
        doubled = min(self._settings.backoff_seconds * 2.0 ** min(attempt - 1, 60), longest)
        spread = hashlib.sha256(f"{request.key}:{attempt}".encode()).digest()[0] / 255
        return max(doubled * (0.5 + 0.5 * spread), min(trouble.retry_after or 0.0, longest))

    def _text(self, response: httpx2.Response) -> str:
        text = response.content.decode("utf-8", "replace")
        return text.replace(self._key, HIDDEN_KEY) if len(self._key) >= MIN_SECRET_CHARS else text

    def _shown(self, message: str) -> str:
        """What may be shown of what an endpoint said: a line of it, without the secret."""
        hidden = message.replace(self._key, HIDDEN_KEY) if self._key else message
        return valid_unicode(" ".join(hidden.split()))[:MAX_MESSAGE_CHARS]

    @property
    def _place(self) -> str:
        return f"the model {self._settings.model!r} at {self._settings.base_url}"

    @cached_property
    def _client(self) -> OpenAI:
        timeout = httpx2.Timeout(self._settings.timeout_seconds, connect=min(CONNECT_SECONDS, self._settings.timeout_seconds))
        transport = DeadlineTransport(self._settings.timeout_seconds, self._settings.max_concurrency)
        client = OpenAI(
            base_url=self._locate(self._settings),
            api_key=self._key or NO_KEY,
            timeout=timeout,
            max_retries=0,
            http_client=httpx2.Client(transport=transport, timeout=timeout),
        )
        client.organization = client.project = None  # which it takes from the environment, whoever the endpoint belongs to
        return client
