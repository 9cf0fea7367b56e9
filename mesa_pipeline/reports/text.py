"""How numbers and foreign text look in a report."""

import re

from mesa_pipeline.numerals import ABSENT, confidence, difference, interval, number, percent, plural, score, seconds

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


__all__ = [
    "ABSENT",
    "code",
    "confidence",
    "difference",
    "interval",
    "number",
    "percent",
    "plural",
    "printable",
    "score",
    "seconds",
    "sentence",
]
