"""Subject-relation-object triples, the passages they are extracted from, and their anchoring to steps (paper, A.1 and C.2)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mesa_pipeline.structures.packing import packed
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step

TERM = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Triple:
    """A relation between two entities.

    Attributes:
        subject: Entity, as written in the source.
        relation: What connects the two, as written in the source where possible.
        object: Entity or value.
        step: Index of the step that states it; ``None`` until anchored.
        time: When it was said or happened, in the source's own words; empty where the source gives none.
    """

    subject: str
    relation: str
    object: str
    step: int | None = None
    time: str = ""


class TripleExtractor(Protocol):
    """Finds the triples of a passage. Equal passages give equal triples, in the same order."""

    def identity(self) -> Mapping[str, Any]:
        """All that changes the triples (parameters, model names, prompt fingerprints, a version): JSON-able."""
        ...

    def extract(self, passage: Sequence[Step]) -> Sequence[Triple]:
        """Triples of consecutive steps. A long step comes in parts: several passages with a step of the same index.

        A triple whose step the extractor does not know has ``step=None`` and is anchored by ``anchor``.
        """
        ...


def split_passages(steps: Sequence[Step], max_chars: int, overlap: int) -> Iterator[tuple[Step, ...]]:
    """Pack consecutive steps into passages of at most ``max_chars`` characters of serialised text.

    A longer step is split into parts that share ``overlap`` characters, each part a passage of its own.
    """
    for passage in packed(steps, max_chars):
        if len(serialize_step(passage[0]).text) > max_chars:
            yield from ((part,) for part in _split_step(passage[0], max_chars, overlap))
        else:
            yield passage


def _split_step(step: Step, max_chars: int, overlap: int) -> Iterator[Step]:
    """Parts of a long step: a short action goes with the first part of the observation, a long one is split as well."""
    frame = len(serialize_step(Step(step.index, "a", "o")).text)
    room = max(max_chars - frame, 1)
    actions = list(_windows(step.action, room, overlap))
    yield from (Step(step.index, action, "") for action in actions[:-1])
    action = actions[-1] if actions else ""
    first = room - len(action)
    if not step.observation or first < room // 2:
        yield Step(step.index, action, "")
        yield from (Step(step.index, "", text) for text in _windows(step.observation, room, overlap))
        return
    yield Step(step.index, action, step.observation[:first])
    rest = step.observation[max(first - overlap, 0) :] if len(step.observation) > first else ""
    yield from (Step(step.index, "", text) for text in _windows(rest, room, overlap))


def _windows(text: str, size: int, overlap: int) -> Iterator[str]:
    """Consecutive pieces of at most ``size`` characters, each beginning ``overlap`` characters before the last one's end."""
    stride = max(size - overlap, 1)
    start = 0
    while start < len(text):
        yield text[start : start + size]
        if start + size >= len(text):
            return
        start += stride


def anchor(triples: Sequence[Triple], passage: Sequence[Step]) -> list[Triple]:
    """Give every triple without a step the step of the passage whose text holds most of its words, the earliest on a tie."""
    if all(triple.step is not None for triple in triples):
        return list(triples)
    words = [(step.index, _terms(f"{step.action}\n{step.observation}")) for step in passage]
    return [triple if triple.step is not None else replace(triple, step=_best_step(triple, words)) for triple in triples]


def _best_step(triple: Triple, words: Sequence[tuple[int, frozenset[str]]]) -> int:
    wanted = _terms(f"{triple.subject} {triple.relation} {triple.object}")
    return max(words, key=lambda entry: len(wanted & entry[1]))[0]


def _terms(text: str) -> frozenset[str]:
    return frozenset(TERM.findall(text.lower()))
