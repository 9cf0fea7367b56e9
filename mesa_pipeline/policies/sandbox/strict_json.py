"""JSON from a process that is not trusted: parsed to the letter, refused where parsers are lenient."""

import json
import math
from typing import Any, NoReturn

MAX_DEPTH = 64


def parse(content: bytes) -> Any:
    """The value of one JSON text.

    Lone surrogates, which JSON can escape and policies learn from hostile questions, stay as they are: they survive being
    written as ASCII again.

    Raises:
        ValueError: It is not UTF-8 or not JSON, holds NaN or an infinity, repeats a key, or nests deeper than ``MAX_DEPTH``.
    """
    try:
        value = json.loads(
            content.decode("utf-8"), parse_float=_finite, parse_constant=_refuse_constant, object_pairs_hook=_without_repeats
        )
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    _check_depth(value)
    return value


def dump(value: Any) -> bytes:
    """Compact JSON in ASCII.

    Raises:
        ValueError: It holds NaN or an infinity, or refers to itself.
        TypeError: It holds what JSON has no form for.
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is beyond what a float can hold")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return members


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
