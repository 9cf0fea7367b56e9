"""What a server with prefix caching saves when all subsets of a question are read one after the other."""

from dataclasses import dataclass

import numpy as np

from mesa_pipeline.subsets import ALL_SUBSETS, COMPOSE_ORDER, STRUCTURE_CODES


@dataclass(frozen=True)
class Prefill:
    """Evidence tokens that a server works through when every question is read under all 31 subsets.

    Attributes:
        naive: Of all prompts.
        shared: Of those, the ones that are new to a prefix cache.
    """

    naive: int
    shared: int

    @property
    def share(self) -> float:
        """In (0, 1]; NaN where there is no evidence at all."""
        return self.shared / self.naive if self.naive else float("nan")


def prefill(tokens: np.ndarray) -> Prefill:
    """What a sweep costs in evidence tokens; questions that are not swept under all subsets are left out.

    Sections stand in one fixed order and each depends on the sections before it alone, so a prompt is the prompt of the subset
    without its last section, and that section. With a cache only the last section is new. Task and question are not counted.

    Args:
        tokens: Evidence tokens, shape ``(n, 31)``; NaN where there is no outcome.
    """
    swept = tokens[~np.isnan(tokens).any(axis=1)]
    known = np.column_stack([np.zeros(len(swept)), swept])[:, [_without_last_section(mask) for mask in ALL_SUBSETS]]
    return Prefill(round(float(swept.sum())), round(float((swept - known).sum())))


def _without_last_section(mask: int) -> int:
    bits = (1 << STRUCTURE_CODES.index(code) for code in reversed(COMPOSE_ORDER))
    return mask & ~next(bit for bit in bits if mask & bit)
