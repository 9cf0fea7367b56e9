"""How numbers and foreign text look in a report."""

import math
import re

ABSENT = "–"
REPLACEMENT = "\ufffd"
MAX_TEXT_CHARS = 300
# Controls, bidirectional overrides and lone surrogates: invisible, unprintable, or able to reorder the page around them.
_UNPRINTABLE = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_WHITE_SPACE = re.compile(r"\s+")


def printable(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Foreign text on one line: unprintable characters become a visible mark, and a long text is cut."""
    if len(text) > max_chars:
        text = text[: max_chars - 1] + "…"
    return _WHITE_SPACE.sub(" ", _UNPRINTABLE.sub(REPLACEMENT, text)).strip()


def sentence(clause: str) -> str:
    """Foreign text as a sentence of its own."""
    said = printable(clause)
    return f"{said[:1].upper()}{said[1:]}."


def code(source: str) -> str:
    """Foreign text of several lines: line breaks and indents stay, unprintable characters become a visible mark."""
    return _UNPRINTABLE.sub(REPLACEMENT, source.expandtabs(4).replace("\r\n", "\n").replace("\r", "\n")).strip("\n")


def number(value: float, decimals: int = 0, signed: bool = False) -> str:
    """Thousands separated, a true minus sign, and a dash where there is no value."""
    if not math.isfinite(value):
        return ABSENT
    rounded = round(value, decimals) + 0.0  # turns a negative zero into zero
    text = f"{rounded:{'+' if signed and rounded else ''},.{decimals}f}"
    return text.replace("-", "−")


def score(value: float, decimals: int = 2) -> str:
    """A score in [0, 1] times a hundred."""
    return number(100 * value, decimals)


def difference(value: float, decimals: int = 2) -> str:
    """A difference of scores times a hundred, with its sign."""
    return number(100 * value, decimals, signed=True)


def interval(low: float, high: float) -> str:
    """Both ends of an interval of score differences."""
    return f"{difference(low)} to {difference(high)}" if math.isfinite(low) and math.isfinite(high) else ABSENT


def percent(share: float, decimals: int = 0) -> str:
    """A share in [0, 1] as a percentage."""
    return f"{number(100 * share, decimals)}%" if math.isfinite(share) else ABSENT


def seconds(value: float) -> str:
    """A duration with three digits or so."""
    return number(value, 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 4)


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"


def confidence(level: float) -> str:
    """An interval's confidence, such as ``95%``."""
    return f"{100 * level:g}%"
