"""Subsets of the five structures as bit masks (paper, Eq. 2).

Bit k stands for ``STRUCTURE_CODES[k]``, so the 31 non-empty subsets are the integers 1..31 and column ``mask - 1`` of every
outcome matrix belongs to ``mask``.
"""

from collections.abc import Iterable

from mesa_pipeline.errors import PolicyError

STRUCTURE_CODES = ("S", "T", "G", "V", "R")
STRUCTURE_NAMES = {"S": "summary", "T": "temporal", "G": "graph", "V": "vector", "R": "raw"}
COMPOSE_ORDER = ("S", "R", "V", "T", "G")
ALL_SUBSETS = tuple(range(1, 2 ** len(STRUCTURE_CODES)))
FULL_SUBSET = ALL_SUBSETS[-1]
SINGLE_SUBSETS = tuple(1 << k for k in range(len(STRUCTURE_CODES)))


def encode(structures: Iterable[str]) -> int:
    """Bit mask of a collection of structure codes; duplicates collapse, order is ignored.

    Raises:
        PolicyError: The collection is empty or names something that is not a structure.
    """
    mask = 0
    for code in structures:
        if code not in STRUCTURE_CODES:
            raise PolicyError(f"{code!r} is not a structure; known are {', '.join(STRUCTURE_CODES)}")
        mask |= 1 << STRUCTURE_CODES.index(code)
    if not mask:
        raise PolicyError("a policy must select at least one structure")
    return mask


def decode(mask: int) -> tuple[str, ...]:
    """Structure codes of a mask, in the order S T G V R.

    Raises:
        PolicyError: The mask is not one of the 31 non-empty subsets.
    """
    if mask not in ALL_SUBSETS:
        raise PolicyError(f"{mask!r} is not a non-empty subset of the five structures (1..{FULL_SUBSET})")
    return tuple(code for k, code in enumerate(STRUCTURE_CODES) if mask >> k & 1)


def label(mask: int) -> str:
    """Short name of a subset, such as ``S+T``."""
    return "+".join(decode(mask))


def size(mask: int) -> int:
    """Number of structures in a subset."""
    return mask.bit_count()


def prefix_order() -> tuple[int, ...]:
    """The 31 subsets ordered so that neighbours share the longest prefix of sections in ``COMPOSE_ORDER``.

    Depth-first over the section sequence: every subset comes right after the subset it extends, so a prefix-caching server
    still holds the shared sections.
    """
    ordered: list[int] = []

    def visit(mask: int, start: int) -> None:
        if mask:
            ordered.append(mask)
        for position in range(start, len(COMPOSE_ORDER)):
            bit = 1 << STRUCTURE_CODES.index(COMPOSE_ORDER[position])
            visit(mask | bit, position + 1)

    visit(0, 0)
    return tuple(ordered)
