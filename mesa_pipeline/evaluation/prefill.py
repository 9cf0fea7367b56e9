"""What a server with prefix caching saves when all subsets of a question are read one after the other."""

import numpy as np

from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.subsets import ALL_SUBSETS, COMPOSE_ORDER, STRUCTURE_CODES


def prefill_share(matrix: OutcomeMatrix) -> float:
    """Evidence tokens that are new to a prefix cache, as a share of those of all 31 prompts; questions not swept are left out.

    Sections stand in one fixed order and each depends on the sections before it alone, so a prompt is the prompt of the subset
    without its last section, and that section. With a cache only the last section is new. Task and question are not counted.

    Returns:
        In (0, 1]; NaN when no question is swept under all subsets, or none has any evidence.
    """
    tokens = matrix.tokens[~np.isnan(matrix.tokens).any(axis=1)]
    shared = np.column_stack([np.zeros(len(tokens)), tokens])[:, [_without_last_section(mask) for mask in ALL_SUBSETS]]
    every = float(tokens.sum())
    return float((tokens - shared).sum()) / every if every else float("nan")


def _without_last_section(mask: int) -> int:
    bits = (1 << STRUCTURE_CODES.index(code) for code in reversed(COMPOSE_ORDER))
    return mask & ~next(bit for bit in bits if mask & bit)
