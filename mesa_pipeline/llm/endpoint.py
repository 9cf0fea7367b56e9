"""Chat completions of an OpenAI-compatible endpoint (vLLM, llama.cpp, a hosted one), each paid for once."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from mesa_pipeline.config import ChatSettings
from mesa_pipeline.llm import Completion
from mesa_pipeline.llm.cache import ReplyCache, request_key
from mesa_pipeline.llm.connection import Connection, Locate, Request, stated_url
from mesa_pipeline.llm.ledger import Ledger, Phase
from mesa_pipeline.llm.replies import completion_of
from mesa_pipeline.llm.troubles import Trouble
from mesa_pipeline.llm.turns import Turns


class Endpoint:
    """One endpoint; any number of threads may share it, and equal requests that they make at once are one call.

    Args:
        settings: Where it is, which model, how many requests at once and how patient to be.
        cache: Where replies are kept.
        ledger: Where attempts are written down.
        key: Its secret; ``None`` where it wants none. It is sent to the endpoint and shown nowhere.
        sleep: Waits a number of seconds.
        locate: Asked for the URL before the first request.
    """

    def __init__(
        self,
        settings: ChatSettings,
        cache: ReplyCache,
        ledger: Ledger,
        key: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
        locate: Locate = stated_url,
    ) -> None:
        self.settings = settings
        self._cache = cache
        self._ledger = ledger
        self._connection = Connection(settings, ledger, key, sleep, locate)
        self._turns = Turns()

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
            known = self._cache.get(request)
            if known is not None:
                self._ledger.record_replays(phase, self.settings.model)
                return known
            return self.keep(request, self._asked(request, phase))

    def keep(self, request: Mapping[str, Any], completion: Completion) -> Completion:
        """Give this reply from now on; where another process was faster it is that process's reply, here too."""
        self._cache.put(request, completion)
        return self._cache.get(request) or completion

    def _asked(self, request: Mapping[str, Any], phase: Phase) -> Completion:
        """The endpoint's reply. An empty one is asked for again: said twice it is the model's own, once may be a bad moment."""
        sent = Request("/chat/completions", request, request_key(request), phase)
        first = self._connection.ask(sent, self._read)
        return first if first.text else self._connection.ask(sent, self._read)

    def _read(self, reply: Mapping[str, Any]) -> Completion | Trouble:
        return completion_of(reply, self.settings.thinking)
