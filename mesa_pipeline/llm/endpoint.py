"""An OpenAI-compatible endpoint (vLLM, llama.cpp, a hosted one), with the patience that real ones need.

Every request is looked up in the cache first, waits for its turn among those in flight, is tried again after trouble that
passes, and is written into the ledger attempt by attempt.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpx2
from openai import APIError, OpenAI

from mesa_pipeline.config import EndpointSettings
from mesa_pipeline.errors import MissingDependency, ModelError
from mesa_pipeline.llm import Completion
from mesa_pipeline.llm.cache import ReplyCache, request_key
from mesa_pipeline.llm.deadline import DeadlineTransport
from mesa_pipeline.llm.ledger import Attempt, Ledger, Phase
from mesa_pipeline.llm.troubles import Trouble, trouble_of

NO_KEY = "none"


class ContextOverflow(ModelError):
    """The endpoint says that the conversation is longer than the model's context."""


@dataclass(frozen=True)
class Endpoint:
    """One endpoint; any number of threads may share it.

    Attributes:
        settings: Where it is, which model, how many requests at once and how patient to be.
        cache: Where replies are kept.
        ledger: Where attempts are written down.
        key: Its secret; ``None`` where it wants none. It is sent to the endpoint and shown nowhere.
        sleep: Waits a number of seconds.
    """

    settings: EndpointSettings
    cache: ReplyCache
    ledger: Ledger
    key: str | None = field(default=None, repr=False)
    sleep: Callable[[float], None] = time.sleep

    def complete(self, request: Mapping[str, Any], phase: Phase) -> Completion:
        """The reply to a request, from the cache where it was asked before.

        Args:
            request: Model, messages and sampling, as the endpoint takes them: all that changes the reply.
            phase: What it is for, in the ledger.

        Raises:
            ContextOverflow: The conversation is too long.
            ModelError: No reply to this request, also after trying again.
            MissingDependency: The endpoint cannot be reached or refuses us; says what to do.
        """
        with self._turns.of(request_key(request)):
            known = self.cache.get(request)
            if known is not None:
                return known
            completion = self._tried(request, phase)
            self.cache.put(request, completion)
            return completion

    def _tried(self, request: Mapping[str, Any], phase: Phase) -> Completion:
        attempt = 0
        while True:
            attempt += 1
            outcome = self._attempt(request, phase)
            if isinstance(outcome, Completion):
                return outcome
            if outcome.kind not in ("passing", "unreachable") or attempt == self.settings.max_attempts:
                raise self._error(outcome, attempt)
            self.sleep(self._pause(request, attempt, outcome))

    def _error(self, trouble: Trouble, attempts: int) -> ModelError | MissingDependency:
        if trouble.kind == "unreachable":
            return MissingDependency(f"{self._place} cannot be reached ({trouble.message}); start it, or correct its base_url")
        if trouble.kind == "refused":
            return MissingDependency(f"{self._place} refuses the request ({trouble.message}); check the model and the key")
        if trouble.kind == "overflow":
            return ContextOverflow(trouble.message)
        return ModelError(f"{trouble.message}, {attempts} times" if attempts > 1 else trouble.message)

    def _attempt(self, request: Mapping[str, Any], phase: Phase) -> Completion | Trouble:
        started = time.perf_counter()
        try:
            with self._in_flight:
                started = time.perf_counter()
                reply = self._client.chat.completions.create(**request)
            outcome = completion_of(reply)
        except APIError as error:
            reply, outcome = None, trouble_of(error)
        self._record(request, phase, reply, outcome, time.perf_counter() - started)
        return outcome

    def _record(
        self, request: Mapping[str, Any], phase: Phase, reply: Any, outcome: Completion | Trouble, seconds: float
    ) -> None:
        usage = getattr(reply, "usage", None)
        details = getattr(usage, "prompt_tokens_details", None)
        self.ledger.record(
            Attempt(
                phase=phase,
                model=str(request["model"]),
                request=request_key(request),
                outcome="ok" if isinstance(outcome, Completion) else f"{outcome.kind}: {outcome.message}",
                seconds=seconds,
                prompt_tokens=_count(usage, "prompt_tokens"),
                cached_tokens=_count(details, "cached_tokens"),
                completion_tokens=_count(usage, "completion_tokens"),
            )
        )

    def _pause(self, request: Mapping[str, Any], attempt: int, trouble: Trouble) -> float:
        """Seconds to wait: what the endpoint asks for, else twice as long each time, spread so that not all return at once."""
        if trouble.retry_after is not None:
            return trouble.retry_after
        doubled = min(self.settings.backoff_seconds * 2.0 ** (attempt - 1), self.settings.max_backoff_seconds)
        spread = hashlib.sha256(f"{request_key(request)}:{attempt}".encode()).digest()[0] / 255
        return doubled * (0.5 + 0.5 * spread)

    @property
    def _place(self) -> str:
        return f"the language model {self.settings.model!r} at {self.settings.base_url}"

    @cached_property
    def _client(self) -> OpenAI:
        connections = self.settings.max_concurrency
        transport = DeadlineTransport(self.settings.timeout_seconds, connections)
        return OpenAI(
            base_url=self.settings.base_url,
            api_key=self.key or NO_KEY,
            timeout=self.settings.timeout_seconds,
            max_retries=0,
            http_client=httpx2.Client(transport=transport, timeout=self.settings.timeout_seconds),
        )

    @cached_property
    def _in_flight(self) -> threading.BoundedSemaphore:
        return threading.BoundedSemaphore(self.settings.max_concurrency)

    @cached_property
    def _turns(self) -> "_Turns":
        return _Turns()


def completion_of(reply: Any) -> Completion | Trouble:
    """What a server's reply says; servers leave out, null and misplace what the protocol promises.

    With thinking off some servers put the whole text where the reasoning would be and leave the content null (vLLM 17349).
    """
    choices = getattr(reply, "choices", None) or []
    message = getattr(choices[0], "message", None) if choices else None
    if message is None:
        return Trouble("passing", "a reply without a message")
    text = message.content
    if text is None:
        extra = message.model_extra or {}
        text = extra.get("reasoning_content") or extra.get("reasoning")
    if not isinstance(text, str):
        return Trouble("passing", "a reply without content")
    usage = getattr(reply, "usage", None)
    return Completion(
        text=text.encode("utf-8", "replace").decode("utf-8"),
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        cached_tokens=_count(getattr(usage, "prompt_tokens_details", None), "cached_tokens"),
        finish_reason=str(choices[0].finish_reason or "stop"),
    )


def _count(usage: Any, name: str) -> int:
    """A count of tokens, 0 where it is missing or nonsense."""
    value = getattr(usage, name, None)
    return value if isinstance(value, int) and value > 0 else 0


class _Turns:
    """One request at a time for each key, so that equal requests made at once are one call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[threading.Lock]] = {}

    @contextmanager
    def of(self, key: str) -> Iterator[None]:
        with self._lock:
            queue = self._waiting.setdefault(key, [threading.Lock()])
            queue.append(queue[0])
        try:
            with queue[0]:
                yield
        finally:
            with self._lock:
                queue.pop()
                if len(queue) == 1:
                    self._waiting.pop(key, None)
