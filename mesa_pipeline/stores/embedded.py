"""Stores that live in the process: nothing to install, nothing to start. How vectors are scored and ranked, everywhere."""

import numpy as np

from mesa_pipeline.stores import Match

SCORE_DECIMALS = 6
RANKING_VERSION = 2
"""Of the scores and their order; a change of it makes new evidence of the same vectors."""


def inner_products(vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Rounded score of every vector, whichever others are scored beside it.

    The products are summed in float64, row by row, so that any choice of rows gives the scores that all of them give. They are
    rounded so that float32 noise of the embedding model (about 1e-7) breaks no tie.

    Args:
        vectors: Shape ``(n, dimensions)``.
        query: Shape ``(dimensions,)``.

    Returns:
        Shape ``(n,)``, float64.
    """
    scores: np.ndarray = np.vecdot(vectors.astype(np.float64, copy=False), query.astype(np.float64, copy=False))
    return np.asarray(np.round(scores, SCORE_DECIMALS) + 0.0)


def best_matches(positions: np.ndarray, scores: np.ndarray, k: int) -> list[Match]:
    """The ``k`` best, best first; equal scores stand in order of position.

    Args:
        positions: Shape ``(n,)``, integers, in any order.
        scores: Shape ``(n,)``, as ``inner_products`` gives them.
        k: Matches wanted.
    """
    best = np.lexsort((positions, -scores))[:k]
    return [Match(int(positions[place]), float(scores[place])) for place in best]


class ArrayVectorIndex:
    """Exact inner-product search over an array held in memory.

    Args:
        vectors: Shape ``(n, dimensions)``, float32.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = np.asarray(vectors, dtype=np.float32).astype(np.float64)
        self._positions = np.arange(len(self._vectors))

    def search(self, queries: np.ndarray, k: int) -> list[list[Match]]:
        """The ``k`` best matches of every query; see ``VectorIndex``. A query's scores do not depend on those beside it."""
        return [self._search_one(query, k) for query in np.asarray(queries, dtype=np.float32)]

    def _search_one(self, query: np.ndarray, k: int) -> list[Match]:
        return best_matches(self._positions, inner_products(self._vectors, query), k)
