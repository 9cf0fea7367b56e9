"""The steps a question names: singles, lists, ranges, prefixes and suffixes (paper, A.1: the temporal store's access).

Numbers are the data's own step indices, counted from zero; only "the 5th step" counts from one. Ranges include both ends. A
chain such as "8 -> 10 -> 11" names its members, not what lies between them. "Until step 12" is 0..12, "before step 12" is
0..11, "after step 12" is 12 to the end: the step named stays as the anchor.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mesa_pipeline.structures.reference_cues import Cue
from mesa_pipeline.structures.reference_grammar import TO_THE_END, Item, Phrase, find_phrases
from mesa_pipeline.structures.reference_positions import Position
from mesa_pipeline.structures.reference_tokens import Tokens

ReferenceKind = Literal["single", "list", "range", "prefix", "suffix"]

# Words of an agent's own plan ("step_status of step 0"), whose steps are not those of the trajectory.
_PLAN = re.compile(r"\bstep_[a-z]|\bmark_step\b|\bmarked as\b|\bstatus of\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference with its provenance.

    Attributes:
        kind: ``list`` is one number out of several joined by commas or words; each has a reference of its own.
        unit: The word it was named by: step, turn, observation, action or index.
        indices: Step indices inside the trajectory, ascending; empty where all lie beyond its end.
        start: Offset of its first character in the question, cue included.
        end: Offset after its last character.
    """

    kind: ReferenceKind
    unit: str
    indices: range
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class References:
    """All references of one question, in the order of the text."""

    found: tuple[Reference, ...] = ()

    @property
    def indices(self) -> tuple[int, ...]:
        """Every step named, ascending, each once."""
        merged: list[int] = []
        for indices in sorted((found.indices for found in self.found if found.indices), key=lambda indices: indices.start):
            first = max(indices.start, merged[-1] + 1) if merged else indices.start
            merged.extend(range(first, indices.stop))
        return tuple(merged)

    @property
    def exact(self) -> tuple[int, ...]:
        """Steps named one by one, ascending, each once: the anchors of the graph's proximity score."""
        return tuple(sorted({index for found in self.found if found.kind in {"single", "list"} for index in found.indices}))

    @property
    def anchors(self) -> tuple[int, ...]:
        """Steps that spans are counted from, ascending, each once: the first of a suffix, the last of anything else."""
        spans = [found for found in self.found if found.indices]
        return tuple(sorted({span.indices[0] if span.kind == "suffix" else span.indices[-1] for span in spans}))


def parse_references(text: str, last_index: int) -> References:
    """Find the steps a question names.

    Args:
        text: The question, any text; time and memory are linear in its length.
        last_index: Index of the trajectory's last step; -1 for an empty trajectory, which has no steps to name.

    Returns:
        References in the order of the text. Where turns and an agent's plan steps are both numbered, the turns alone are kept.
    """
    tokens = Tokens(text)
    found: list[Reference] = []
    quoted: set[int] = set()
    for phrase in find_phrases(tokens, last_index):
        if isinstance(phrase, Phrase) and phrase.is_quoted:
            quoted.add(len(found))
        start = tokens[phrase.begins_at].start
        for span in _spans(phrase, last_index):
            indices = range(max(span.indices.start, 0), min(span.indices.stop, last_index + 1))
            end = tokens[span.following - 1].end
            found.append(Reference(span.kind, phrase.unit, indices, start, end))
            start = end
    return References(tuple(_without_plan_steps(text, found, quoted)))


@dataclass(frozen=True, slots=True)
class _Span:
    """Steps named by one part of a phrase, not yet clipped; ``following`` is the position of the token after it."""

    kind: ReferenceKind
    indices: range
    following: int


def _spans(phrase: Phrase | Position, last_index: int) -> list[_Span]:
    if isinstance(phrase, Position):
        return [_position_span(phrase, last_index)]
    first, *others = phrase.items
    if phrase.cue == "between" and others and _are_two_ends(first, others[0]):
        spans = [_Span("range", _inclusive(first.values[0], others[0].values[0]), others[0].following)]
        others = others[1:]
    elif phrase.cue not in {"none", "between"} and len(first.values) == 1:
        spans = [_cued_span(phrase.cue, first, last_index)]
    else:
        spans = _item_spans(first, bool(others), last_index)
    for item in others:
        spans += _item_spans(item, True, last_index)
    return spans


def _inclusive(one_end: int, other_end: int) -> range:
    return range(min(one_end, other_end), max(one_end, other_end) + 1)


def _are_two_ends(first: Item, second: Item) -> bool:
    return len(first.values) == len(second.values) == 1 and second.joined_by in {"and", "&"}


def _item_spans(item: Item, is_listed: bool, last_index: int) -> list[_Span]:
    values = [last_index if value == TO_THE_END else value for value in item.values]
    if len(values) == 2:
        return [_Span("range", _inclusive(*values), item.following)]
    kind: ReferenceKind = "list" if is_listed or len(values) > 1 else "single"
    return [_Span(kind, _inclusive(value, value), item.following) for value in values]


def _cued_span(cue: Cue, item: Item, last_index: int) -> _Span:
    index = item.values[0]
    spans: dict[Cue, tuple[ReferenceKind, range]] = {
        "until": ("prefix", range(index + 1)),
        "before": ("prefix", range(index)),
        "just before": ("prefix", range(index - 1, index)),
        "after": ("suffix", range(index, last_index + 1)),
        "just after": ("suffix", range(index, index + 2)),
        "before and after": ("range", range(index - 1, index + 2)),
    }
    kind, indices = spans[cue]
    return _Span(kind, indices, item.following)


def _position_span(position: Position, last_index: int) -> _Span:
    following = position.unit_at + 1
    count = 1 if position.count is None else position.count
    kind: ReferenceKind = "single" if position.count is None else "prefix"
    if position.origin == "ordinal":
        return _Span("single", range(count - 1, count), following)
    if position.origin == "first":
        return _Span(kind, range(count), following)
    kind = "single" if position.count is None else "suffix"
    return _Span(kind, range(last_index - count + 1, last_index + 1), following)


def _without_plan_steps(text: str, found: list[Reference], quoted: set[int]) -> Iterator[Reference]:
    """Leave out numbered steps beside numbered turns where they are quoted or the question speaks of a plan."""
    has_turns = any(reference.unit == "turn" for reference in found)
    speaks_of_plan = has_turns and _PLAN.search(text) is not None
    for number, reference in enumerate(found):
        if not (has_turns and reference.unit == "step" and (speaks_of_plan or number in quoted)):
            yield reference
