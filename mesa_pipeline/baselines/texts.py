"""Cutting texts the ways that baselines do."""

from collections.abc import Callable

from mesa_pipeline.llm import TokenCounter

LEFT_OUT = "\n[...]\n"
LIKELY_CHARS = 4
"""Of a token: where looking for the end of so many tokens begins."""


def pieces(text: str, size: int) -> list[str]:
    """The text in consecutive pieces of ``size`` characters, the last one shorter; none of an empty text."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def token_pieces(text: str, size: int, counter: TokenCounter) -> list[str]:
    """The text in consecutive pieces of at most ``size`` tokens, at least 1; none of an empty text."""
    found: list[str] = []
    while text:
        piece = first_tokens(text, size, counter) or text[0]
        found.append(piece)
        text = text[len(piece) :]
    return found


def first_tokens(text: str, limit: int, counter: TokenCounter) -> str:
    """The longest beginning that has at most so many tokens."""
    return text[: _longest(lambda chars: counter.count(text[:chars]) <= limit, len(text), limit * LIKELY_CHARS)]


def last_tokens(text: str, limit: int, counter: TokenCounter) -> str:
    """The longest end that has at most so many tokens."""
    chars = _longest(lambda chars: counter.count(text[len(text) - chars :]) <= limit, len(text), limit * LIKELY_CHARS)
    return text[len(text) - chars :]


def head_and_tail(text: str, limit: int, head: float, counter: TokenCounter) -> str:
    """The text in at most so many tokens or thereabouts: what is too long keeps its beginning and its end, if there is room.

    Args:
        text: Any text.
        limit: Tokens, those of the mark where something is missing included.
        head: The beginning's share of what is kept, from 0 to 1.
        counter: Counts the tokens.
    """
    if counter.count(text) <= limit:
        return text
    room = limit - counter.count(LEFT_OUT)
    if room <= 0:
        return ""
    first = int(room * head)
    return first_tokens(text, first, counter) + LEFT_OUT + last_tokens(text, room - first, counter)


def _longest(fits: Callable[[int], bool], most: int, likely: int) -> int:
    """Largest number from 0 to ``most`` that fits, where what is shorter than one that fits does too.

    Nothing is tried that is longer than ``likely`` or twice the answer: counting the tokens of all that follows, for each piece
    of a long text, would take the square of its length.
    """
    low, high = 0, min(max(likely, 1), most)
    while high < most and fits(high):
        low, high = high, min(2 * high, most)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
