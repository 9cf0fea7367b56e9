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
        """The ``k`` best matches of every query; see ``VectorIndex``."""
        scores = np.round(np.asarray(queries, dtype=np.float32) @ self._vectors.T, SCORE_DECIMALS)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return [
            [Match(int(position), float(scores[row, position])) for position in positions] for row, positions in enumerate(best)
        ]
