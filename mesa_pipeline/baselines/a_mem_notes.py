"""A-Mem's notes, and how a language model's replies about them are read (paper, B.1)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mesa_pipeline.llm.structured import without_reasoning
from mesa_pipeline.stores.tokenizers import STOP_WORDS, split_words

Heading = Literal["KEYWORDS", "CONTEXT", "TAGS", "LINKS", "NEIGHBOUR"]
MAX_REPLY_CHARS = 50_000
MAX_NAMES = 30
"""Keywords, tags or links read from one line: no honest line has more."""
LINE = re.compile(
    r"^[ \t*#>\-]{0,8}(KEYWORDS|CONTEXT|TAGS|LINKS|NEIGHBOUR|NEIGHBOR)[ \t*]{0,4}:[ \t*]{0,4}(.*)$", re.IGNORECASE
)
FALLBACK_KEYWORDS = 8


@dataclass(frozen=True)
class Note:
    """One step with what is said about it.

    Attributes:
        step: Index of the step.
        content: The serialised step.
        keywords: Words it can be found by.
        context: What it is about, in a sentence.
        tags: Broad categories.
        links: Positions of notes that it was linked to.
    """

    step: int
    content: str
    keywords: tuple[str, ...] = ()
    context: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """What is embedded, shown to the model, and given as evidence."""
        said = (
            ("Context", self.context),
            ("Keywords", ", ".join(self.keywords)),
            ("Tags", ", ".join(self.tags)),
        )
        return "\n".join([self.content, *(f"{name}: {value}" for name, value in said if value)])

    @classmethod
    def of_record(cls, record: Sequence[Any]) -> "Note":
        """Inverse of ``record``."""
        step, content, keywords, context, tags, links = record
        return cls(step, content, tuple(keywords), context, tuple(tags), tuple(links))

    @property
    def record(self) -> list[Any]:
        """As JSON can hold it."""
        return [self.step, self.content, list(self.keywords), self.context, list(self.tags), list(self.links)]


@dataclass(frozen=True)
class Change:
    """What a new note makes of one of its neighbours.

    Attributes:
        neighbour: Its position among the neighbours shown.
        context: Its new context; empty to keep the old one.
        tags: Its new tags; none to keep the old ones.
    """

    neighbour: int
    context: str
    tags: tuple[str, ...]

    def of(self, note: Note) -> Note:
        """The neighbour changed."""
        return replace(note, context=self.context or note.context, tags=self.tags or note.tags)


@dataclass(frozen=True)
class Decision:
    """Whether a new note is linked, and whether its neighbours are described anew."""

    strengthen: bool
    update: bool


def read_sections(reply: str) -> list[Mapping[Heading, str]]:
    """Lines of the form ``HEADING: text``, in runs: a heading that was there already, or a neighbour, begins another."""
    runs: list[dict[Heading, str]] = [{}]
    for line in without_reasoning(reply)[:MAX_REPLY_CHARS].splitlines():
        if not (match := LINE.match(line)):
            continue
        name = "NEIGHBOUR" if match[1].upper().startswith("NEIGHBO") else match[1].upper()
        heading: Heading = name  # type: ignore[assignment]  # the pattern has no others
        if heading in runs[-1] or (heading == "NEIGHBOUR" and runs[-1]):
            runs.append({})
        runs[-1][heading] = match[2].strip()
    return [run for run in runs if run]


def read_names(line: str) -> tuple[str, ...]:
    """Names separated by commas, each once; brackets and quotes around them are dropped."""
    names = (name.strip(" \t[]{}\"'`*.") for name in line.split(",")[:MAX_NAMES])
    return tuple(dict.fromkeys(name for name in names if name and name.lower() != "none"))


def read_numbers(line: str, below: int) -> tuple[int, ...]:
    """Whole numbers from 0 to ``below`` - 1, each once, in order."""
    numbers = (int(number) for number in re.findall(r"(?<!\d)\d{1,6}(?!\d)", line)[:MAX_NAMES])
    return tuple(dict.fromkeys(number for number in numbers if number < below))


def read_decision(reply: str) -> Decision | None:
    """The decision in a reply; ``None`` where it holds none."""
    said = without_reasoning(reply)[:MAX_REPLY_CHARS].upper()
    decision = Decision("STRENGTHEN" in said, "UPDATE_NEIGHBO" in said)
    if "NO_EVOLUTION" in said:
        return Decision(False, False)
    return decision if decision.strengthen or decision.update else None


def read_changes(reply: str, neighbours: int) -> list[Change]:
    """What is said of neighbours that exist; what says nothing new is left out."""
    changes: list[Change] = []
    for run in read_sections(reply):
        for number in read_numbers(run.get("NEIGHBOUR", ""), neighbours)[:1]:
            change = Change(number, run.get("CONTEXT", ""), read_names(run.get("TAGS", "")))
            changes += [change] if change.context or change.tags else []
    return changes


def frequent_words(texts: Iterable[str]) -> tuple[str, ...]:
    """Keywords where a model names none: the most frequent words that are no stop words, the earlier first among equals."""
    words = Counter(word for text in texts for word in split_words(text) if word not in STOP_WORDS and len(word) > 2)
    return tuple(word for word, _ in words.most_common(FALLBACK_KEYWORDS))
