"""Packing consecutive steps, as summaries and graphs are built from them (paper, A.1)."""

from collections.abc import Iterator, Sequence

from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step


def packed(steps: Sequence[Step], max_chars: int) -> Iterator[tuple[Step, ...]]:
    """Consecutive steps together, as many as have at most ``max_chars`` characters of serialised text.

    A single longer step stands alone. Every step is in exactly one pack.
    """
    pack: list[Step] = []
    size = 0
    for step in steps:
        length = len(serialize_step(step).text)
        if pack and size + length > max_chars:
            yield tuple(pack)
            pack, size = [], 0
        pack.append(step)
        size += length
    if pack:
        yield tuple(pack)
