"""Embeddings of an OpenAI-compatible endpoint, such as vLLM with Qwen3-Embedding (paper, A.1: E_emb)."""

import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.config import EmbeddingsSettings
from mesa_pipeline.errors import ConfigError
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.llm.cache import VectorCache
from mesa_pipeline.llm.concurrency import map_concurrently
from mesa_pipeline.llm.connection import Connection, ContextOverflow, Locate, Request, stated_url
from mesa_pipeline.llm.context_window import cut_end, room_once_refused
from mesa_pipeline.llm.ledger import Ledger
from mesa_pipeline.llm.replies import valid_unicode, vectors_of
from mesa_pipeline.llm.troubles import overflow_of

SPECIAL_TOKENS = 8
"""What a model adds to a text, generously."""
PROBE = "dimensions"
"""A text to learn the length of a vector from, where no other text has one."""


class EndpointEmbedder:
    """An ``Embedder`` behind an endpoint. Each text is paid for once; texts without words have the zero vector.

    Documents and queries are embedded alike: no instruction is put before a query (paper, Section 5.1).

    Args:
        settings: Where it is, which model, how many texts and requests at once and how patient to be.
        cache: Where vectors are kept, text by text.
        ledger: Where attempts are written down, under the phase ``embed``.
        counter: Counts tokens as the model does, or nearly: the end of a text too long for the model is left out.
        key: The endpoint's secret; ``None`` where it wants none.
        sleep: Waits a number of seconds.
        locate: Asked for the URL before the first request.
    """

    def __init__(
        self,
        settings: EmbeddingsSettings,
        cache: VectorCache,
        ledger: Ledger,
        counter: TokenCounter,
        key: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
        locate: Locate = stated_url,
    ) -> None:
        self._settings = settings
        self._cache = cache
        self._ledger = ledger
        self._counter = counter
        self._connection = Connection(settings, ledger, key, sleep, locate)

    @property
    def name(self) -> str:
        return self._settings.model

    @cached_property
    def dimensions(self) -> int:
        """Length of a vector; the endpoint is asked, once.

        Raises:
            ModelError: No reply.
            MissingDependency: The endpoint cannot be reached or refuses us.
        """
        return len(self._vectors([PROBE])[PROBE])

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """L2-normalised float32 vectors, shape ``(len(texts), dimensions)``.

        Raises:
            ModelError: No reply for some texts; what there was is kept, so that a rerun asks for the rest alone.
            MissingDependency: The endpoint cannot be reached or refuses us.
            ConfigError: It gives vectors of another length than before.
        """
        room = self._settings.context_tokens - SPECIAL_TOKENS
        readable = [cut_end(valid_unicode(text), self._counter, room) for text in texts]
        found = self._vectors(list(dict.fromkeys(text for text in readable if text.strip())))
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float64)
        for row, text in enumerate(readable):
            if text in found:
                vectors[row] = found[text]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def _vectors(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The model's own vectors of distinct texts with words, from the cache where they are there."""
        found = self._cache.get(self.name, texts)
        if found:
            self._ledger.record_replays("embed", self.name, len(found))
        missing = [text for text in texts if text not in found]
        size = self._settings.batch_size
        batches = [missing[start : start + size] for start in range(0, len(missing), size)]
        for batch, vectors in zip(batches, map_concurrently(self._kept, batches, self._settings.max_concurrency), strict=True):
            found |= zip(batch, vectors, strict=True)
        self._check_lengths({len(vector) for vector in found.values()})
        return found

    def _check_lengths(self, lengths: set[int]) -> None:
        known = {self.__dict__["dimensions"]} if "dimensions" in self.__dict__ else set()
        if len(lengths | known) > 1:
            given = " and ".join(map(str, sorted(lengths | known)))
            raise ConfigError(
                f"{self.name!r} at {self._settings.base_url} gives vectors of {given} dimensions under one name; "
                "use another --workspace for another model"
            )

    def _kept(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self._asked(texts)
        self._cache.put(self.name, zip(texts, vectors, strict=True))
        return vectors

    def _asked(self, texts: Sequence[str]) -> np.ndarray:
        """The endpoint's vectors; where it counts more tokens than we do the longest texts are shortened once more."""
        try:
            return self._sent(texts)
        except ContextOverflow as overflow:
            said = overflow_of(str(overflow))
            longest = max(map(self._counter.count, texts))
            limit = (said.limit or self._settings.context_tokens) - SPECIAL_TOKENS
            room = room_once_refused(longest, limit, said.counted)
        return self._sent([cut_end(text, self._counter, room) for text in texts])

    def _sent(self, texts: Sequence[str]) -> np.ndarray:
        body = {"model": self.name, "input": list(texts), "encoding_format": "float"}
        request = Request("/embeddings", body, fingerprint("embeddings", body), "embed")
        return self._connection.ask(request, partial(vectors_of, count=len(texts)))
