"""Stores that live in the process: nothing to install, nothing to start."""

import numpy as np

from mesa_pipeline.stores import Match

SCORE_DECIMALS = 6


class ArrayVectorIndex:
    """Exact inner-product search over an array held in memory.

    Scores are rounded to six decimals before ranking, so that float32 noise of the embedding model (about 1e-7) breaks no tie;
    ties go to the lower position.

    Args:
        vectors: Shape ``(n, dimensions)``, float32.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = np.asarray(vectors, dtype=np.float32)

    def search(self, queries: np.ndarray, k: int) -> list[list[Match]]:
        """The ``k`` best matches of every query; see ``VectorIndex``. A query's scores do not depend on those beside it."""
        return [self._search_one(query, k) for query in np.asarray(queries, dtype=np.float32)]

    def _search_one(self, query: np.ndarray, k: int) -> list[Match]:
        scores = np.round(self._vectors @ query, SCORE_DECIMALS)
        best = np.argsort(-scores, kind="stable")[:k]
        return [Match(int(position), float(scores[position])) for position in best]
