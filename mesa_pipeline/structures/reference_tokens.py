"""Splits a question into the few kinds of tokens that the grammar of step references is written in."""

import re
from typing import Literal, NamedTuple

TokenKind = Literal["number", "ordinal", "word", "connector", "mark", "other"]

ARROWS = frozenset({"->", "=>", "\u2192", "\u21d2"})
# Possessive quantifiers throughout: each character is looked at a bounded number of times, whatever the text.
_TOKEN = re.compile(
    r"""
      (?P<other>     [0-9]++ (?: \.[0-9]++ )++ | [0-9]++ \s?% )
    | (?P<ordinal>   [0-9]++ (?: st|nd|rd|th ) (?![^\W_]) )
    | (?P<number>    [0-9]++ (?![^\W_]) )
    | (?P<word>      [^\W\d_]++ )
    | (?P<glued>     [^\W_]++ )
    | (?P<connector> ->|=>|[-\u2010-\u2015\u2192\u21d2\u2212~]|\.{2,3}+|\u2026 )
    | (?P<mark>      [^\s\x00\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff] )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_KINDS: dict[str | None, TokenKind] = {
    "number": "number",
    "ordinal": "ordinal",
    "word": "word",
    "connector": "connector",
    "mark": "mark",
}


class Token(NamedTuple):
    """A lower-cased piece of a question with its character offsets; decimals, percentages and such are ``other``."""

    kind: TokenKind
    text: str
    start: int
    end: int


class Tokens:
    """The tokens of a question, white space and invisible characters left out; linear in the question's length."""

    def __init__(self, question: str) -> None:
        self._tokens = [
            Token(_KINDS.get(match.lastgroup, "other"), match.group().lower(), match.start(), match.end())
            for match in _TOKEN.finditer(question)
        ]

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, position: int) -> Token:
        return self._tokens[position]

    def text(self, position: int) -> str:
        """Text of a token, empty outside the question."""
        return self._tokens[position].text if 0 <= position < len(self._tokens) else ""

    def kind(self, position: int) -> TokenKind:
        """Kind of a token, ``other`` outside the question."""
        return self._tokens[position].kind if 0 <= position < len(self._tokens) else "other"

    def is_glued(self, position: int) -> bool:
        """Whether nothing stands between this token and the one before it."""
        return 0 < position < len(self._tokens) and self._tokens[position - 1].end == self._tokens[position].start
