"""Open extraction by rules: what was done, with what, what came of it, and what the observations state.

It knows forms, not benchmarks: tool calls, command phrases, named values and their changes, tables, accessibility trees,
errors, speech and plain sentences. ``docs/decisions/0041-open-extraction.md`` has the measurements behind it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any

from mesa_pipeline.structures.actions import Action, compact_action, parse_action
from mesa_pipeline.structures.observation_relations import ENTITY_CHARS, ObservationReader, is_dialogue
from mesa_pipeline.structures.observation_units import shorten
from mesa_pipeline.structures.triples import Triple
from mesa_pipeline.types import Step

VERSION = 1
AGENT = "agent"
LABEL_CHARS = 100
SURPLUS = 4
MAX_NAMES = 8
MAX_WORDS = 40
PREPOSITIONS = {"to", "from", "in", "on", "into", "onto", "with", "at", "off", "under", "for"}
PARTICLES = {"up", "down", "out", "away", "back"}
NAME = re.compile(
    r"https?://[^\s\"'<>)\]]{3,300}|\"([^\"\\\n]{3,80})\"|'([^'\\\n]{3,80})'|\[(\d{1,9})\]"
    r"|((?:[\w.~-]*/)+[\w.-]+|[A-Za-z]\w*[._]\w[\w.]*|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)"
)
STRONG = re.compile(r"changes (?:from|to)|fails with|results in|is answered")


class RuleExtractor:
    """Triples without a language model; every one knows its step.

    Args:
        triples_per_step: Most triples of one step within one passage. Where there are more, what was done, what failed and what
            changed comes first, then statements with names or numbers.
    """

    def __init__(self, triples_per_step: int) -> None:
        self._triples_per_step = triples_per_step

    def identity(self) -> Mapping[str, Any]:
        return {"kind": "rules", "version": VERSION, "triples_per_step": self._triples_per_step}

    def extract(self, passage: Sequence[Step]) -> list[Triple]:
        """See ``triples.TripleExtractor``."""
        dialogue = is_dialogue(passage)
        reader = ObservationReader(dialogue)
        found: list[Triple] = []
        for step in passage:
            candidates = _step_triples(step, reader, dialogue)
            found.extend(self._best(islice(candidates, SURPLUS * self._triples_per_step), step.index))
        return found

    def _best(self, candidates: Iterator[Triple], step: int) -> list[Triple]:
        distinct: dict[tuple[str, str, str], Triple] = {}
        for triple in candidates:
            anchored = Triple(triple.subject, triple.relation, triple.object, step, triple.time)
            distinct.setdefault((triple.subject, triple.relation, triple.object), anchored)
        ranked = sorted(enumerate(distinct.values()), key=lambda entry: (-_weight(entry[1]), entry[0]))
        return [triple for _, triple in sorted(ranked[: self._triples_per_step])]


def _step_triples(step: Step, reader: ObservationReader, dialogue: bool) -> Iterator[Triple]:
    label = "" if dialogue else compact_action(step.action, LABEL_CHARS)
    if label:
        yield from action_triples(parse_action(step.action), label)
    first = True
    for triple in reader.read(step.observation, label):
        if first and label and triple.relation != "fails with":
            yield Triple(label, "results in", shorten(f"{triple.subject} {triple.relation} {triple.object}", ENTITY_CHARS))
        first = False
        yield triple


def action_triples(action: Action, label: str) -> Iterator[Triple]:
    """What an action does: a tool with its arguments and the names in them, or a phrase's verb with its objects."""
    if action.tool:
        for name, value in action.arguments.items():
            yield Triple(action.tool, name or "runs", shorten(value, ENTITY_CHARS))
        for named in _names(" ".join(action.arguments.values())):
            yield Triple(named, f"in {action.tool}", label)
        return
    yield from _phrase_triples(action.text.split())
    for named in _names(action.text):
        yield Triple(named, "in action", label)


def _phrase_triples(words: Sequence[str]) -> Iterator[Triple]:
    """``move soapbar 1 to garbagecan 1``: the agent moves the soapbar, and the soapbar is moved to the garbagecan."""
    words = list(takewhile(lambda word: word != "where", words[:MAX_WORDS]))
    if not words:
        return
    if len(words) == 1 or not words[0].isalpha():
        yield Triple(AGENT, "does", shorten(" ".join(words), ENTITY_CHARS))
        return
    source, relation = AGENT, words[0].lower()
    phrase: list[str] = []
    for word in [*words[1:], ""]:
        if word and word.lower() not in PREPOSITIONS and not (word.lower() in PARTICLES and not phrase):
            phrase.append(word)
            continue
        if phrase:
            target = shorten(" ".join(phrase), ENTITY_CHARS)
            yield Triple(source, relation, target)
            source, relation, phrase = target, words[0].lower(), []
        relation = f"{relation} {word.lower()}".strip()


def _names(text: str) -> list[str]:
    """Identifiers, paths and quoted names of a text, each once, in order."""
    names: dict[str, None] = {}
    for match in NAME.finditer(text[:4000]):
        name = next((group for group in match.groups() if group is not None), match.group())
        names.setdefault(f"[{name}]" if match[3] else name.strip())
        if len(names) == MAX_NAMES:
            break
    return [name for name in names if name]


def _weight(triple: Triple) -> int:
    told = f"{triple.subject} {triple.object}"
    strong = STRONG.search(triple.relation) is not None or triple.subject == AGENT or triple.relation.startswith("in ")
    return 3 if strong else 2 if any(character.isdigit() or character.isupper() for character in told) else 1
