"""Facts in the structured parts of a log: JSON and dict literals, ``key: value`` lines, tables and accessibility trees.

Everything scans tokens from left to right with patterns that cannot backtrack far, so cut-off and malformed input costs no more
than well-formed input and yields what can still be read of it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MAX_KEY = 60
MAX_CELLS = 20
MAX_NAME = 40
MAX_NAME_WORDS = 3
MAX_LITERAL_FIELDS = 400
QUOTES = "\"'"
LITERAL_TOKEN = re.compile(
    r"""
      "(?P<double>(?:[^"\\]++|\\.)*+)"?
    | '(?P<single>(?:[^'\\]++|\\.)*+)'?
    | (?P<mark>[{}\[\]:,])
    | (?P<plain>[^\s{}\[\]:,"']++)
    """,
    re.VERBOSE | re.DOTALL,
)
LITERAL_LINE = re.compile(r"""\s*(?:[{\[]\s*(?:["'{\[]|$)|["'][\w .:/-]{1,60}["']\s*:)""", re.MULTILINE)
KEY_VALUE = re.compile(r"(?P<key>[^\W\d_][\w .()/-]{0,40}?)\s*(?::\s+|=\s*|:$)(?P<value>.*)")
ELEMENT = re.compile(r"\[(?P<id>\w{1,12})\]\s+(?P<role>[A-Za-z]\w{1,30})\s+(?P<quote>['\"])(?P<rest>.*)")
SEPARATORS = ("|", "\t", ",")
RULER = re.compile(r"[\s|+:=-]+")


@dataclass(frozen=True, slots=True)
class Field:
    """A named value; ``owner`` is what it belongs to, as far as the text says, else empty."""

    owner: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Element:
    """A node of an accessibility tree, such as ``[457] link 'Issues'``."""

    id: str
    role: str
    name: str


def starts_literal(line: str) -> bool:
    """Whether a line begins like JSON or a Python literal with named values."""
    return LITERAL_LINE.match(line) is not None


class Literal(NamedTuple):
    """Named values of a literal, in order, and the offset where it ends in the text."""

    fields: list[Field]
    end: int


def read_literal(text: str, start: int) -> Literal:
    """Read the literal that begins at ``start``, as far as it goes.

    Values of one object belong to the first short text value in it, such as its ``name`` or ``id``; before there is one, to the
    name under which the object stands. A list of plain values is one value.
    """
    reader = _LiteralReader(text)
    end = start
    for match in LITERAL_TOKEN.finditer(text, start):
        reader.take(match)
        end = match.end()
        if (match["mark"] in ("}", "]") and not reader.depth) or len(reader.fields) >= MAX_LITERAL_FIELDS:
            break
    reader.end_value()
    return Literal(reader.fields, end)


class _LiteralReader:
    """State of reading one literal token by token; a name is known for one only once the colon after it is read."""

    def __init__(self, text: str) -> None:
        self.fields: list[Field] = []
        self.depth = 0
        self._text = text
        self._owners = [_Owner("")]
        self._key = ""
        self._last = ""
        self._span: tuple[int, int] | None = None

    def take(self, match: re.Match[str]) -> None:
        mark = match["mark"]
        if mark == ":":
            self._key = self._key or self._last
        elif mark == ",":
            self._last = ""
            if not self._in_list:
                self.end_value()
        elif mark:
            self._bracket(mark, match)
        else:
            self._last = _token_text(match)
            if self._key:
                self._extend(match)

    @property
    def _in_list(self) -> bool:
        return self._owners[-1].lists > 0

    def _bracket(self, mark: str, match: re.Match[str]) -> None:
        self.depth += 1 if mark in "{[" else -1
        if mark == "{":
            inner = self._key or self._owners[-1].list_name or self._owners[-1].name
            self._span = None
            self._key = ""
            self._owners.append(_Owner(inner))
        elif mark == "}":
            self.end_value()
            if len(self._owners) > 1:
                self._owners.pop()
        elif mark == "[":
            self._owners[-1].lists += 1
            if self._key:
                self._owners[-1].list_name = self._key
                self._extend(match)
        else:
            self._owners[-1].lists = max(self._owners[-1].lists - 1, 0)
            if self._key and self._span:
                self._extend(match)
            if not self._in_list:
                self.end_value()

    def _extend(self, match: re.Match[str]) -> None:
        self._span = (self._span[0] if self._span else match.start(), match.end())

    def end_value(self) -> None:
        """The value read so far is whole."""
        owner = self._owners[-1]
        if self._key and self._span:
            value = self._text[self._span[0] : self._span[1]]
            quoted = value[:1] in QUOTES
            value = value.strip("\"'").strip()
            if any(character.isalnum() for character in value):
                self.fields.append(Field(owner.name, self._key, value))
                if quoted and not owner.named and len(self._owners) > 1 and 1 < len(value) <= MAX_KEY:
                    owner.name, owner.named = value, True
        self._key, self._span = "", None


@dataclass(slots=True)
class _Owner:
    name: str
    named: bool = False
    lists: int = 0
    list_name: str = ""


def _token_text(match: re.Match[str]) -> str:
    found = match["double"] or match["single"] or match["plain"] or ""
    return found.strip()[:MAX_KEY]


def key_value(line: str) -> Field | None:
    """The pair of a ``key: value`` or ``key = value`` line."""
    match = KEY_VALUE.match(line)
    if not match or not match["value"].strip():
        return None
    return Field("", match["key"].strip(), match["value"].strip())


def element(line: str) -> Element | None:
    """The node that an accessibility tree's line describes, when it has a name."""
    match = ELEMENT.match(line)
    if not match:
        return None
    end = match["rest"].rfind(match["quote"])
    name = match["rest"][:end] if end >= 0 else match["rest"]
    return Element(match["id"], match["role"], name.strip()) if name.strip() else None


class TableScanner:
    """Recognises tables as runs of lines with the same separator equally often; the first line of a run names the columns."""

    def __init__(self) -> None:
        self._separator = ""
        self._header: tuple[str, ...] = ()
        self._pending: tuple[str, tuple[str, ...]] | None = None

    def scan(self, line: str) -> list[Field]:
        """Cells of a table row as values owned by its first cell; empty for a header and for what is no row."""
        if self._header and RULER.fullmatch(line):
            return []
        cells = _cells(line, self._separator) if self._header else ()
        if self._header and len(cells) == len(self._header):
            return [
                Field(cells[0], name, cell) for name, cell in zip(self._header[1:], cells[1:], strict=True) if name and cell
            ]
        self._header = ()
        return self._start(line)

    def _start(self, line: str) -> list[Field]:
        pending, self._pending = self._pending, None
        if pending and RULER.fullmatch(line):
            self._pending = pending
            return []
        for separator in SEPARATORS:
            cells = _cells(line, separator)
            if 2 <= len(cells) <= MAX_CELLS and all(len(cell) <= 120 for cell in cells):
                if pending and pending[0] == separator and len(pending[1]) == len(cells) and _names_columns(pending[1]):
                    self._separator, self._header = pending
                    return self.scan(line)
                self._pending = (separator, cells)
                return []
        return []


def _cells(line: str, separator: str) -> tuple[str, ...]:
    if separator not in line:
        return ()
    stripped = line.strip().strip("|") if separator == "|" else line
    return tuple(cell.strip().strip("\"'") for cell in stripped.split(separator))


def _names_columns(cells: Sequence[str]) -> bool:
    """Column names are short, all different, and not numbers: what tells a header from a sentence with commas."""
    return len(set(cells)) == len(cells) and all(
        0 < len(cell) <= MAX_NAME and len(cell.split()) <= MAX_NAME_WORDS and not cell[0].isdigit() for cell in cells
    )
