"""Which steps to keep when a question names more than evidence may hold ("until step 149")."""

from bisect import bisect_left
from collections.abc import Sequence, Set
from itertools import islice

import numpy as np


def select_steps(named: Set[int], exact: Set[int], anchors: Sequence[int], scores: np.ndarray, limit: int) -> list[int]:
    """Keep at most ``limit`` of the named steps: half of the room by nearness in time, half by likeness to the question.

    Steps named one by one come first. Ties go to the later step in time, and to the earlier one in likeness.

    Args:
        named: Positions of all steps named.
        exact: Those of them that were named one by one.
        anchors: Positions where a span ends that the question counts from, ascending: 12 in "until step 12".
        scores: Lexical score of every step against the question, shape ``(steps,)``.
        limit: Most positions to keep, at least 1.

    Returns:
        Positions kept, ascending.
    """
    kept = set(sorted(exact)[-limit:])
    nearest = sorted(named - kept, key=lambda position: (_distance(anchors, position), -position))
    kept.update(nearest[: (limit - len(kept) + 1) // 2])
    likest = sorted(named - kept, key=lambda position: (-scores[position], position))
    kept.update(islice((position for position in likest if scores[position] > 0), limit - len(kept)))
    kept.update(islice((position for position in nearest if position not in kept), limit - len(kept)))
    return sorted(kept)


def _distance(anchors: Sequence[int], position: int) -> int:
    """Steps to the nearest anchor; 0 without anchors."""
    right = bisect_left(anchors, position)
    around = anchors[max(right - 1, 0) : right + 1]
    return min((abs(position - anchor) for anchor in around), default=0)
