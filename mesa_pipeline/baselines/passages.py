"""Texts that know which steps they are of."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mesa_pipeline.baselines.texts import pieces, token_pieces
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step

BREAK = "\n\n"


@dataclass(frozen=True)
class Passage:
    """Consecutive text of a trajectory.

    Attributes:
        text: The text.
        steps: Indices of the steps that any of it is of, ascending.
    """

    text: str
    steps: tuple[int, ...]


def packed(steps: Sequence[Step], max_chars: int) -> tuple[Passage, ...]:
    """Whole serialised steps, as many together as fit; a step that is longer by itself is cut into passages of its own."""
    return _packed(steps, max_chars, len, lambda record: pieces(record, max_chars))


def in_tokens(steps: Sequence[Step], max_tokens: int, counter: TokenCounter) -> tuple[Passage, ...]:
    """``packed``, measured in tokens."""
    return _packed(steps, max_tokens, counter.count, lambda record: token_pieces(record, max_tokens, counter))


def _packed(
    steps: Sequence[Step], room: int, size: Callable[[str], int], cut: Callable[[str], list[str]]
) -> tuple[Passage, ...]:
    passages: list[Passage] = []
    records: list[str] = []
    held: list[int] = []
    for step in steps:
        record = serialize_step(step).text
        is_long = size(record) > room
        if records and (is_long or size(BREAK.join([*records, record])) > room):
            passages.append(Passage(BREAK.join(records), tuple(dict.fromkeys(held))))
            records, held = [], []
        if is_long:
            passages += (Passage(piece, (step.index,)) for piece in cut(record))
            continue
        records.append(record)
        held.append(step.index)
    if records:
        passages.append(Passage(BREAK.join(records), tuple(dict.fromkeys(held))))
    return tuple(passages)


def as_records(passages: Iterable[Passage]) -> list[list[object]]:
    """Passages as JSON can hold them."""
    return [[passage.text, list(passage.steps)] for passage in passages]


def from_records(records: Iterable[Sequence[object]]) -> tuple[Passage, ...]:
    """Inverse of ``as_records``."""
    return tuple(Passage(str(text), tuple(steps)) for text, steps in records)  # type: ignore[arg-type]
