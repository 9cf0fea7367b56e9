"""Models behind protocols: what the core asks of an embedder and of a token counter."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Embedder(Protocol):
    """Turns texts into vectors.

    Two embedders with the same ``name`` give the same vectors for the same texts; a memory built with one name refuses to be
    queried with another.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """L2-normalised float32 vectors, shape ``(len(texts), dimensions)``; the zero vector only where a text has none."""
        ...


class TokenCounter(Protocol):
    """Counts tokens the way the answer model does; ``name`` is stamped on every outcome."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int: ...
