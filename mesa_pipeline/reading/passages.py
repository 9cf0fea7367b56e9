"""What a reader without a language model sees in a section: passages, cut into units short enough to quote.

The reader is given text, as a language model would be, so it recognises where a text says which step it speaks of: ``Step 7``
alone on a line above a record's first line, ``Step 7: ...`` and ``Steps 7-9: ...``, ``... (steps 7, 9)``, numbered lines under
a heading of actions, and ``[1:56 pm on 8 May, 2023] Ann: ...`` inside an observation. Linear in the length of the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mesa_pipeline.structures.temporal import ACTIONS_HEADING

Field = Literal["action", "observation", "statement"]

LONG_LINE = 140
MAX_UNIT = 280
MAX_STEPS = 64
HEAD_TOKENS = 3
HEADER = re.compile(r"^Step (\d{1,9})\n(?=Action: |Observation: |\(no action)", re.MULTILINE)
CITATION = re.compile(r"Steps? (\d{1,9})(?:-(\d{1,9}))?: ")
ANCHOR = re.compile(r"\(steps? (\d[\d, ]{0,200})(?:; ([^()]{1,60}))?\)\s*$")
NUMBERED = re.compile(r"(\d{1,9}): (.*)")
TURN = re.compile(r"(?:\[([^\]\n]{1,60})\] )?([A-Z][\w.'-]{0,30}(?: [A-Z][\w.'-]{0,30}){0,2}): (?=\S)")
REFERRAL = "Also relevant, shown above: "
RECORD_FIELDS: tuple[tuple[str, Field], ...] = (("Action: ", "action"), ("Observation: ", "observation"))
CLAUSE_END = re.compile(r"(?<=[.!?;])\s+|\s\|\s|(?<=[,}\]])\s*(?=[\"'][\w .-]{1,40}[\"']\s*:)")
ESCAPE = re.compile(r"(?<!\\)\\++([ntr\"'/])")
UNESCAPED = {"n": "\n", "t": " ", "r": " "}
TOKEN = re.compile(r"\w+")
ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True, slots=True)
class Source:
    """What a unit's text says it was taken from.

    Attributes:
        steps: Steps it speaks of, ascending, at most ``MAX_STEPS``; empty where none is named.
        time: When it was said, in the text's own words; empty where not told.
        speaker: Who said it; empty where not told.
    """

    steps: tuple[int, ...] = ()
    time: str = ""
    speaker: str = ""

    @property
    def step(self) -> int | None:
        """The one step it speaks of, if it is one."""
        return self.steps[0] if len(self.steps) == 1 else None


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of evidence short enough to quote.

    Attributes:
        text: The piece on one line, at most ``MAX_UNIT`` characters.
        tokens: Its words in lower case, articles left out; never empty.
        head: The first tokens of the line it is of, which repeat where lines are boilerplate.
        field: Which part of a step it tells; ``statement`` where the text does not say.
        source: Where it is from.
    """

    text: str
    tokens: tuple[str, ...]
    head: tuple[str, ...]
    field: Field
    source: Source


@dataclass(frozen=True, slots=True)
class Passage:
    """A step record, or one line outside records, as units in their order."""

    units: tuple[Unit, ...]
    source: Source


def words(text: str) -> tuple[str, ...]:
    """Words of a text in lower case, articles left out."""
    return tuple(lowered for word in TOKEN.findall(text) if (lowered := word.lower()) not in ARTICLES)


def split_section(text: str) -> list[str]:
    """The text cut before every step record, so that a record met again in another section is the same string."""
    starts = [match.start() for match in HEADER.finditer(text)]
    pieces = [text[start:end] for start, end in zip([0, *starts], [*starts, len(text)], strict=True)]
    return [piece for piece in map(str.strip, pieces) if piece]


def read_passages(text: str) -> tuple[Passage, ...]:
    """Passages of one piece of ``split_section``; a record is one, otherwise every line is one of its own."""
    header = HEADER.match(text)
    if header:
        source = Source((int(header[1]),))
        units = tuple(_record_units(text[header.end() :], source))
        return (Passage(units, units[-1].source),) if units else ()
    return tuple(passage for passage in _line_passages(text) if passage.units)


def _record_units(body: str, source: Source) -> Iterator[Unit]:
    field: Field = "observation"
    for line in body.splitlines():
        said = line
        for prefix, name in RECORD_FIELDS:
            if line.startswith(prefix):
                said, field = line[len(prefix) :], name
        turn = TURN.match(said) if field == "observation" and source.step is not None else None
        if turn and turn[1]:
            source = Source(source.steps, turn[1], turn[2])
            said = said[turn.end() :]
        yield from _units(said, field, source)


def _line_passages(text: str) -> Iterator[Passage]:
    numbered = False
    for line in text.splitlines():
        numbered = (numbered or line == ACTIONS_HEADING) and bool(line)
        item = NUMBERED.fullmatch(line) if numbered else None
        if item:
            source = Source((int(item[1]),))
            yield Passage(tuple(_units(item[2], "action", source)), source)
        elif not line.startswith((REFERRAL, "## ", ACTIONS_HEADING)):
            yield _line_passage(line)


def _line_passage(line: str) -> Passage:
    cited = CITATION.match(line)
    if cited:
        source = Source(_range(int(cited[1]), int(cited[2] or cited[1])))
        return _told_passage(line[cited.end() :], source)
    anchor = ANCHOR.search(line, max(len(line) - 300, 0))
    if anchor:
        steps = sorted({int(number) for number in TOKEN.findall(anchor[1])})[:MAX_STEPS]
        source = Source(tuple(steps), anchor[2] or "")
        told = line[: anchor.start()].replace("--> ", " ").replace(" --", " ")
        return Passage(tuple(_units(told, "statement", source)), source)
    return Passage(tuple(_units(line, "statement", Source())), Source())


def _told_passage(told: str, source: Source) -> Passage:
    """A summary's line: an action, an arrow and what was seen, or actions alone, or what someone said."""
    turn = TURN.match(told)
    if turn and turn[1]:
        source = Source(source.steps, turn[1], turn[2])
        return Passage(tuple(_units(told[turn.end() :], "observation", source)), source)
    action, arrow, seen = told.partition(" -> ")
    units = [*_units(action, "action", source), *(_units(seen, "observation", source) if arrow else ())]
    return Passage(tuple(units), source)


def _range(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, min(last, first + MAX_STEPS - 1) + 1)) or (first,)


def _units(line: str, field: Field, source: Source) -> Iterator[Unit]:
    if "\\" in line:
        line = ESCAPE.sub(lambda match: UNESCAPED.get(match[1], match[1]), line)
    for row in line.splitlines():
        head: tuple[str, ...] = ()
        for piece in _pieces(row):
            flat = " ".join(piece.split())
            tokens = words(flat)
            head = head or tokens[:HEAD_TOKENS]
            if tokens:
                yield Unit(flat, tokens, head, field, source)


def _pieces(row: str) -> Iterator[str]:
    for piece in CLAUSE_END.split(row) if len(row) > LONG_LINE else (row,):
        start = 0
        while len(piece) - start > MAX_UNIT:
            space = piece.rfind(" ", start + MAX_UNIT // 2, start + MAX_UNIT)
            end = space if space > 0 else start + MAX_UNIT
            yield piece[start:end]
            start = end
        yield piece[start:]
