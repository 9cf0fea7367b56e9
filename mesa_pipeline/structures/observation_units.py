"""Cuts the text of an observation into units, the smallest pieces a summary keeps or drops.

A unit is a line; a long line falls into sentences, and a long JSON or dict line into fields. Linear in the length of the text.
"""

import re
from dataclasses import dataclass

LONG_LINE = 100
MAX_UNIT = 300
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
FIELD_END = re.compile(r"(?<=[,}\]])\s*(?=[\"'][\w .-]{1,40}[\"']\s*:)")
SPEAKER = re.compile(r"^(\[[^\]]{1,40}\]\s*)?[A-Z][\w.'-]{0,30}(?: [A-Z][\w.'-]{0,30})?: ")
ELEMENT_ID = re.compile(r"^\[\d+\]\s*")
BULLET = re.compile(r"^[-*\u2022]+ ")
WORDS = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of an observation.

    Attributes:
        text: The piece on one line, at most ``MAX_UNIT`` characters.
        lead: Who said it, where the line begins with a speaker and this is not its first sentence; else empty.
    """

    text: str
    lead: str = ""

    @property
    def key(self) -> str:
        """What makes two units the same: element ids, which change with every page load, do not count."""
        return self.lead + ELEMENT_ID.sub("", self.text)


def split_units(text: str) -> list[Unit]:
    """Units of a text, in order; lines without a letter or digit (rules, map art) are left out."""
    units: list[Unit] = []
    for line in text.splitlines():
        flat = BULLET.sub("", " ".join(line.split()))
        if WORDS.search(flat):
            units.extend(_split_line(flat))
    return units


def shorten(text: str, max_chars: int) -> str:
    """A text on one line, its middle left out when it is longer than ``max_chars`` (at least 8) characters."""
    flat = " ".join(text.split())
    if len(flat) <= max_chars:
        return flat
    kept = max(max_chars - 5, 3)
    head = kept * 2 // 3
    return f"{flat[:head].rstrip()} ... {flat[len(flat) - (kept - head) :].lstrip()}"


def _split_line(line: str) -> list[Unit]:
    if len(line) <= LONG_LINE:
        return [Unit(line)]
    structured = line[0] in "{["
    pieces = FIELD_END.split(line) if structured and not ELEMENT_ID.match(line) else SENTENCE_END.split(line)
    speaker = SPEAKER.match(line)
    lead = speaker.group() if speaker else ""
    pieces = [piece for piece in pieces if piece and WORDS.search(piece)]
    return [Unit(shorten(piece, MAX_UNIT), lead if position else "") for position, piece in enumerate(pieces)]
