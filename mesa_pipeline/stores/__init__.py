"""Where memories are searched: the protocols, and the match they return."""

from typing import NamedTuple, Protocol

import numpy as np


class Match(NamedTuple):
    """A stored item found: its position in the order it was added, and its score (higher is better)."""

    position: int
    score: float


class VectorIndex(Protocol):
    """Finds the stored vectors with the largest inner products."""

    def search(self, queries: np.ndarray, k: int) -> list[list[Match]]:
        """The best matches of every query.

        Args:
            queries: Shape ``(queries, dimensions)``, float32.
            k: Matches wanted; fewer where fewer vectors are stored.

        Returns:
            One list a query, best first; equal scores stand in order of position.
        """
        ...


class TextIndex(Protocol):
    """Ranks the stored texts against a query by the words they share."""

    def search(self, query: str, k: int) -> list[Match]:
        """The best matches, best first; equal scores stand in order of position.

        Args:
            query: Any text.
            k: Matches wanted; fewer where fewer texts are stored. A text that shares nothing with the query has score 0.
        """
        ...
