"""Reading lists and objects out of language models' replies: fenced, wrapped in prose, under other keys, or cut in the middle.

Nothing is ever evaluated. What is whole in a reply that was cut is kept; what is not is dropped, and the reply says so.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

MAX_CHARS = 400_000
"""What follows is not read: no honest reply is longer."""
MAX_STARTS = 64
"""Places tried as the beginning of JSON; prose with more brackets than that is not a list."""
OPENING = re.compile(r"[\[{]")
SEPARATOR = re.compile(r"[\s,]*")


@dataclass(frozen=True)
class ListReply:
    """A list as a model gave it.

    Attributes:
        items: JSON values, unchecked.
        complete: Whether the list was whole; ``False`` where the reply was cut, or where no list was found.
    """

    items: tuple[Any, ...]
    complete: bool


def read_list(text: str, keys: Sequence[str]) -> ListReply:
    """The list in a reply.

    Taken is a list under one of ``keys`` wherever it stands; else the first bare list, or object with one list under any key.
    Of a list that was cut, the items that are whole.

    Args:
        text: The reply.
        keys: Names under which the list was asked for, the best first.
    """
    answer = without_reasoning(text)[:MAX_CHARS]
    for key in keys:
        if named := re.search(rf'"{re.escape(key)}"\s*:\s*(?=\[)', answer):
            return _list_at(answer, named.end())
    end = 0
    for match in islice(OPENING.finditer(answer), MAX_STARTS):
        if match.start() < end:
            continue
        decoded = _decoded(answer, match.start())
        found = _list_of(decoded.value) if decoded else None
        if found is not None:
            return ListReply(tuple(found), True)
        if decoded is not None:
            end = decoded.end
        elif match[0] == "[" and (cut := _list_at(answer, match.start())).items:
            return cut
    return ListReply((), False)


def read_object(text: str, keys: Sequence[str]) -> dict[str, Any] | None:
    """The first whole JSON object in a reply that has one of the keys; ``None`` where there is none."""
    answer = without_reasoning(text)[:MAX_CHARS]
    for match in islice(re.finditer(r"\{", answer), MAX_STARTS):
        decoded = _decoded(answer, match.start())
        if decoded is not None and any(key in decoded.value for key in keys):
            return dict(decoded.value)
    return None


def without_reasoning(text: str) -> str:
    """The reply without what a model thought aloud; what follows an opening mark that is never closed is thought, too."""
    if "</think>" in text and "<think>" not in text:
        text = text.rpartition("</think>")[2]
    said, *thoughts = text.split("<think>")
    return said + "".join(thought.partition("</think>")[2] for thought in thoughts)


def _list_of(value: Any) -> list[Any] | None:
    if isinstance(value, list):
        return value
    lists = [found for found in value.values() if isinstance(found, list)]
    return list(lists[0]) if len(lists) == 1 else None


def _list_at(text: str, start: int) -> ListReply:
    """The list that begins at ``start``, as far as it is whole."""
    decoded = _decoded(text, start)
    return ListReply(tuple(decoded.value), True) if decoded else ListReply(tuple(_items(text, start + 1)), False)


def _items(text: str, position: int) -> Iterator[Any]:
    """The whole items at the beginning of a list that was cut."""
    while True:
        separator = SEPARATOR.match(text, position)
        decoded = _decoded(text, separator.end() if separator else position)
        if decoded is None:
            return
        yield decoded.value
        position = decoded.end


@dataclass(frozen=True)
class _Decoded:
    value: Any
    end: int


def _decoded(text: str, start: int) -> _Decoded | None:
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return _Decoded(value, end)
