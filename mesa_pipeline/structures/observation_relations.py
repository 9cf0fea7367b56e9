"""Relations stated by one observation, line by line: literals, elements, tables, speech, named values, prose."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from mesa_pipeline.structures.actions import common_action
from mesa_pipeline.structures.observation_units import shorten
from mesa_pipeline.structures.sentence_relations import fragment_triple, sentence_triples
from mesa_pipeline.structures.structured_text import (
    Element,
    Field,
    TableScanner,
    element,
    key_value,
    read_literal,
    starts_literal,
)
from mesa_pipeline.structures.triples import Triple
from mesa_pipeline.types import Step

ENTITY_CHARS = 160
KEY_CHARS = 60
PROSE_WORDS = 8
LISTING_COMMAS = 8
MAX_LINE = 2000
MAX_ERRORS = 6
MAX_MESSAGE = 100
MAX_PAIRS_LINE = 200
LONG_VALUE = 40
ERROR = re.compile(
    r"\b(?:error|exception|traceback|failed|failure|cannot|can't|unable to|denied|invalid|illegal|no such|timed? ?out"
    r"|does not exist|nothing happens)\b|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
SPEECH = re.compile(r"(?:\[(?P<time>[^\]]{1,60})\]\s*)?(?P<speaker>[A-Z][\w.'-]{0,30}(?: [A-Z][\w.'-]{0,30})?): (?P<words>.+)")
BRACKETED = re.compile(r"\[(?P<key>[A-Za-z][\w ]{1,40}): (?P<value>[^\]]{1,400})\]")
DEFINITION = re.compile(
    r"(?:\d+[\s:-]+)?\s*(?:async\s+)?(?P<kind>class|def|function|func|struct|CREATE TABLE)\s+(?P<name>[\w.\"]+)"
)
PATH = re.compile(r"(?:[\w.~-]*/)+[\w.-]+/?|[A-Za-z][\w-]*\.\w{1,5}")
ABSENT_VALUES = {"None", "null", "NaN", "{}", "[]"}
PAIR = re.compile(r"\b([A-Za-z][\w$]{0,20})[=:]([^\s,;()]{1,60})")
ROOT_ROLES = {"RootWebArea", "document", "WebArea"}
BULLET = re.compile(r"^[-*\u2022]+ ")
ALNUM = re.compile(r"[^\W_]")


def is_dialogue(steps: Sequence[Step]) -> bool:
    """Whether steps are turns of a conversation: all carry the same action, and most observations are somebody's words."""
    spoken = [step for step in steps if (match := SPEECH.match(step.observation)) and " " in match["words"].strip()]
    return bool(common_action(steps)) and 2 * len(spoken) > len(steps)


@dataclass
class ObservationReader:
    """Reads the observations of consecutive steps; what the step before already showed is not told again.

    Args:
        dialogue: Whether the steps are turns of a conversation, so that "you" is not the agent.
    """

    dialogue: bool
    _lines: frozenset[str] = frozenset()
    _values: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def read(self, observation: str, label: str) -> Iterator[Triple]:
        """Relations of one observation, in its order.

        Args:
            observation: The text.
            label: Short name of the action that it answers, the subject of what has no other.
        """
        reading = _Reading(label, self._lines, self._values, self.dialogue)
        yield from reading.relations(observation)
        self._lines = frozenset(reading.seen)
        self._values = reading.values


@dataclass
class _Reading:
    label: str
    known_lines: frozenset[str]
    known_values: dict[tuple[str, str], str | None]
    dialogue: bool
    seen: set[str] = field(default_factory=set)
    values: dict[tuple[str, str], str | None] = field(default_factory=dict)
    page: str = ""
    table: TableScanner = field(default_factory=TableScanner)

    def relations(self, text: str) -> Iterator[Triple]:
        if self.label and not self.dialogue:
            yield from self._errors(text)
        offset = 0
        while offset < len(text):
            end = text.find("\n", offset)
            end = len(text) if end < 0 else end
            if starts_literal(text[offset : offset + 200]):
                literal = read_literal(text, offset)
                yield from self._fields(literal.fields)
                offset = max(literal.end, offset + 1)
                continue
            line = BULLET.sub("", text[offset : min(end, offset + MAX_LINE)].strip())
            offset = min(end, offset + MAX_LINE) + (1 if end <= offset + MAX_LINE else 0)
            if ALNUM.search(line) and line not in self.seen:
                self.seen.add(line)
                if line not in self.known_lines:
                    yield from self._line(line)

    def _errors(self, text: str) -> Iterator[Triple]:
        """The first lines that report an error; told before all else, since an error often ends a long log."""
        lines = (line.strip() for line in text.splitlines())
        errors = (line for line in lines if line not in self.known_lines and ERROR.search(line))
        for line in islice(errors, MAX_ERRORS):
            yield Triple(self.label, "fails with", shorten(line, ENTITY_CHARS))

    def _fields(self, fields: list[Field]) -> Iterator[Triple]:
        for found in fields:
            yield from self._named_value(found)

    def _line(self, line: str) -> Iterator[Triple]:
        node = element(line)
        if node:
            yield from self._element(node)
            return
        cells = self.table.scan(line)
        if cells:
            yield from self._fields(cells)
            return
        speech = SPEECH.match(line) if self.dialogue else None
        if speech:
            yield from _speech(speech)
            return
        yield from self._plain(line)

    def _plain(self, line: str) -> Iterator[Triple]:
        bracketed = BRACKETED.fullmatch(line)
        pair = Field("", bracketed["key"], bracketed["value"]) if bracketed else key_value(line)
        pairs = PAIR.findall(line) if not pair and len(line) <= MAX_PAIRS_LINE else []
        definition = DEFINITION.match(line)
        if definition:
            yield Triple(definition["name"].strip('"'), f"is {definition['kind']} in", self.label or "output")
        elif pair:
            yield from self._named_value(pair)
        elif len(pairs) > 1:
            yield from self._fields([Field("", key, value) for key, value in pairs])
        elif PATH.fullmatch(line):
            yield Triple(self.label or "output", "lists", shorten(line, ENTITY_CHARS))
        else:
            yield from self._prose(line)

    def _prose(self, line: str) -> Iterator[Triple]:
        """What a line's sentences state; a short message that names no subject is what the action is answered with."""
        found = False
        for triple in sentence_triples(line):
            found = True
            yield triple
        if found:
            return
        fragment = fragment_triple(line)
        if fragment:
            yield fragment
        elif self.label and len(line) <= MAX_MESSAGE and line[-1] in ".!" and " " in line:
            yield Triple(self.label, "is answered", line)

    def _element(self, node: Element) -> Iterator[Triple]:
        if node.role in ROOT_ROLES:
            self.page = self.page or shorten(node.name, KEY_CHARS)
            yield Triple(self.label or "page", "shows page", shorten(node.name, ENTITY_CHARS))
            return
        place = f" on {self.page}" if self.page else ""
        yield Triple(f"[{node.id}]", f"is {node.role}{place}", shorten(node.name, ENTITY_CHARS))

    def _named_value(self, named: Field) -> Iterator[Triple]:
        """The value, or how it changed since the step before; a long text also yields the relations of its sentences."""
        key, value = shorten(named.key, KEY_CHARS), shorten(named.value, ENTITY_CHARS)
        place = (named.owner, named.key)
        before = self.known_values.get(place)
        self.values[place] = None if place in self.values else value
        if (
            value in ABSENT_VALUES
            or before == value
            or (named.value.count(",") > LISTING_COMMAS and " " in named.value and named.value[0] not in "[{")
        ):
            return
        verb = "" if not before else f"changes from {before} to" if len(before) <= LONG_VALUE else "changes to"
        if named.owner:
            yield Triple(shorten(named.owner, ENTITY_CHARS), f"{key} {verb}".strip(), value)
        else:
            yield Triple(key, verb or "is", value)
        if len(named.value.split(None, PROSE_WORDS)) > PROSE_WORDS:
            yield from sentence_triples(named.value[:MAX_LINE])


def _speech(speech: re.Match[str]) -> Iterator[Triple]:
    """What a speaker says of themselves and others, with the time of the turn; the words themselves where nothing is parsed."""
    speaker, time = speech["speaker"], speech["time"] or ""
    words = BRACKETED.sub("", speech["words"]).strip()
    found = False
    for triple in sentence_triples(words, speaker):
        found = True
        yield replace(triple, time=", ".join(part for part in (triple.time, time) if part))
    if not found and len(words.split(None, PROSE_WORDS)) > PROSE_WORDS and not words.endswith("?"):
        yield Triple(speaker, "says", shorten(words, ENTITY_CHARS), time=time)
    for match in BRACKETED.finditer(speech["words"]):
        yield Triple(speaker, match["key"], shorten(match["value"], ENTITY_CHARS), time=time)
