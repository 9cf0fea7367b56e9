"""The source in a language model's reply, which may hold prose, several blocks, a wrapper of JSON, or no fence at all.

Nothing in a reply is run or evaluated here, and no reply makes this raise.
"""

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

_THOUGHTS_END = "</think>"
_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$")
_SELECT = re.compile(r"^[ \t]*def[ \t]+select[ \t]*\(", re.MULTILINE)
_PYTHON = frozenset({"python", "python3", "py"})
_CODE_LINE = re.compile(r"(?:def[ \t]|#|[A-Za-z_]\w*[ \t]*(?::[^=\n]*)?=[^=]|[)\]}]|[ \t]+\S)")
_MAX_UNWRAPPED = 3


class _Block(NamedTuple):
    language: str
    text: str


def source_in(reply: str, max_chars: int) -> str:
    """The policy's source; empty where there is none.

    Of several candidates the last that defines ``select`` is taken: models sketch before they answer. Halves of surrogate
    pairs become question marks, so that the source can be stored.

    Args:
        reply: Any text.
        max_chars: What follows is not read. What a model thought before it answered does not count.
    """
    answer = reply.rpartition(_THOUGHTS_END)[2][:max_chars]
    text = answer.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n")
    for _ in range(_MAX_UNWRAPPED):
        inner = _unwrapped(text)
        if inner is None:
            return _unfenced(text)
        text = inner
        if not _opens_a_fence(text):
            break
    return f"{text.strip()}\n" if text.strip() else ""


def _opens_a_fence(text: str) -> bool:
    """Whether a fence stands before ``select``: what was unwrapped is itself a reply."""
    return any(_FENCE.match(line) for line in _SELECT.split(text, maxsplit=1)[0].split("\n"))


def _unwrapped(text: str) -> str | None:
    """What the fences or the JSON around the source hold; ``None`` where there is neither."""
    wrapped = _from_json(text)
    if wrapped is not None:
        return wrapped
    blocks = [block._replace(text=_from_json(block.text) or block.text) for block in _blocks(text)]
    preferred = [block for block in blocks if _SELECT.search(block.text)]
    others = [block for block in blocks if block.language in _PYTHON] or blocks
    chosen = (preferred or others)[-1:]
    return chosen[0].text if chosen else None


def _blocks(text: str) -> Iterator[_Block]:
    """Fenced blocks; one that is never closed reaches to the end."""
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if opened is None:
            opened, lines = found, []
        elif found and not found["info"].strip() and found["fence"].startswith(opened["fence"]):
            yield _block(opened, lines)
            opened = None
        else:
            lines.append(line)
    if opened is not None:
        yield _block(opened, lines)


def _block(opened: re.Match[str], lines: list[str]) -> _Block:
    return _Block(opened["info"].strip().lower(), textwrap.dedent("\n".join(lines)))


def _from_json(text: str) -> str | None:
    """The last text within a JSON value that defines ``select``."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return None
    try:
        found = [value for value in _texts(json.loads(text)) if _SELECT.search(value)]
    except (ValueError, RecursionError):
        return None
    return found[-1] if found else None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _unfenced(text: str) -> str:
    """The lines that look like code, from the first to the last, where one of them defines ``select``."""
    if not _SELECT.search(text):
        return ""
    lines = text.split("\n")
    code = [number for number, line in enumerate(lines) if _CODE_LINE.match(line)]
    return "\n".join(lines[code[0] : code[-1] + 1]) + "\n"
