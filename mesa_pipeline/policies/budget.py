"""A hard limit on evidence tokens: which subset to read when the one a policy would read does not fit.

One rule serves a single question and a whole table, so that what is measured is what is done.
"""

from dataclasses import dataclass

import numpy as np

from mesa_pipeline.policies.estimates import TIE_TOLERANCE
from mesa_pipeline.policies.values import ValueModel
from mesa_pipeline.subsets import ALL_SUBSETS, SINGLE_SUBSETS, size

NOTHING = 0
"""Stands for reading no structure; no subset's mask."""
_MASKS = np.array(ALL_SUBSETS)


@dataclass(frozen=True)
class TokenBudget:
    """How much evidence may be read for a question, and how to choose within it.

    Attributes:
        limit: Most evidence tokens, at least 0; never exceeded.
        values: Expected worth of the subsets; ``None`` where nothing is known of it.
    """

    limit: int
    values: ValueModel | None = None


def choose_within(wanted: np.ndarray, worth: np.ndarray, tokens: np.ndarray, limit: float) -> np.ndarray:
    """What to read for each of n questions: what is wanted where it fits, else the worthiest subset that fits.

    A subset with a structure that found nothing is passed over for the one without it, which is the same text and has an
    expected worth of its own. Ties go to fewer tokens, then to the smaller mask.

    Args:
        wanted: Shape ``(n,)``, masks a policy chose, or ``NOTHING`` where it has no wish.
        worth: Shape ``(n, 31)``, higher is better; a subset of minus infinity is not to be chosen.
        tokens: Shape ``(n, 31)``, exact evidence tokens.
        limit: Most evidence tokens; infinity sets none.

    Returns:
        Shape ``(n,)``: masks, or ``NOTHING`` where no subset with any evidence fits.
    """
    allowed = (tokens <= limit) & ~_has_empty_structure(tokens) & np.isfinite(worth)
    candidates = np.where(allowed, worth, -np.inf)
    best = candidates.max(axis=1, keepdims=True)
    tied = allowed & (candidates >= best - TIE_TOLERANCE)
    fallback = np.where(allowed.any(axis=1), _MASKS[np.where(tied, tokens, np.inf).argmin(axis=1)], NOTHING)
    spent = tokens[np.arange(len(wanted)), np.maximum(wanted, 1) - 1]
    chosen: np.ndarray = np.where((wanted != NOTHING) & (spent <= limit), wanted, fallback)
    return chosen


def most_structures_of(wanted: int) -> np.ndarray:
    """Worth of each subset where nothing is known of it: of the structures wanted, the more the better; shape ``(31,)``."""
    return np.array([float(size(mask)) if mask & ~wanted == 0 else -np.inf for mask in ALL_SUBSETS])


def _has_empty_structure(tokens: np.ndarray) -> np.ndarray:
    """Which subsets have a structure without evidence: boolean, shape ``(n, 31)``."""
    empty = np.zeros(len(tokens), dtype=np.int64)
    for mask in SINGLE_SUBSETS:
        empty |= np.where(tokens[:, mask - 1] == 0, mask, 0)
    found: np.ndarray = (_MASKS & empty[:, np.newaxis]) != 0
    return found
