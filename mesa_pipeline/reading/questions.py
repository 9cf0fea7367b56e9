"""What a reader without a language model makes of a question: its words, the steps it names, and the form it has."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from mesa_pipeline.reading.passages import words
from mesa_pipeline.structures.step_references import parse_references

LARGEST_STEP = 9999
MAX_NAMED = 4096
FUNCTION_WORDS = frozenset(
    words("""
    about above after again all also am and any are as at be because been before being below between both but by can could did
    do does doing down during each few for from further had has have having he her here hers him his how i if in into is it its
    itself just me more most my no nor not now of off on once only or other our out over own same she should so some such than
    that their them then there these they this those through to too under until up very was we were what when where which while
    who whom why will with would you your s t re ve ll d m don didn doesn isn wasn couldn won
    """)
)
FORMS = {
    "asks_step": re.compile(r"\b(?:which|what)(?: \w+)? (?:step|turn)s?\b|\b(?:last|first) (?:step|turn)\b|\bwhen\b"),
    "asks_count": re.compile(r"\bhow (?:many|often|frequently)\b|\bnumber of\b"),
    "asks_why": re.compile(r"\bwhy\b|\bexplain|\breason|\bhow did\b"),
    "hypothetical": re.compile(r"\bif\b|\bwould\b|counterfactual"),
    "asks_exact": re.compile(r"\bexact|\bcommand\b|\bspecific"),
    "asks_list": re.compile(r"\blist\b|\b(?:which|what) (?:[\w-]+ )?actions\b|\bhistor(?:y|ies)\b"),
    "asks_action": re.compile(r"\bactions?\b"),
    "asks_change": re.compile(r"\bchange|\bstate\b|\bupdate"),
    "asks_place": re.compile(r"\blocations?\b|\bwhere\b|\bcontain|\binventory\b"),
    "asks_who": re.compile(r"\bwho(?:se|m)?\b"),
    "asks_name": re.compile(
        r"\bnamed?\b|\b(?:what|which) (?:\w+ )?(?:city|cities|country|countries|town|state|place|company|brand|book|film|movie"
        r"|game|song|band|artist|author|person|restaurant|month|day|language|team|tool|file|table|function|class)s?\b|\bwho\b|\bwhere\b"
    ),
    "asks_evidence": re.compile(r"\bevidence\b|\bidentify\b|\btrace\b|\bdescribe\b|\bsteps\b"),
}
ASKED_ACTIONS = re.compile(r"\b(?:which|what) (?:[\w-]+ )?actions\b")
ASKED_HISTORY = re.compile(r"\bhistor(?:y|ies)\b")
EXCLUDED = re.compile(r"\b(?:excluding|except(?: for)?|other than) ['\"\u2018\u201c`]([^'\"\u2019\u201d`]{1,60})")
YES_NO = re.compile(r"(?:does|did|do|is|are|was|were|has|have|had|can|could|would|will|should)\b", re.IGNORECASE)
VOWEL = re.compile(r"[aeiouy]")


@lru_cache(65_536)
def stem(word: str) -> str:
    """A word without its inflection, roughly: enough for "failed", "fails" and "failing" to meet."""
    if len(word) < 4 or not word.isalpha():
        return word
    for ending in ("ing", "ed", "es", "s", "ly", "e"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) > 2 and VOWEL.search(rest) and not (ending == "s" and rest.endswith("s")):
            return rest[:-1] if rest[-1] == rest[-2] and ending in ("ing", "ed") else rest.removesuffix("e")
    return word


@dataclass(frozen=True)
class QuestionView:
    """A question as the reader sees it.

    Attributes:
        text: The question.
        tokens: Its words in lower case, articles left out.
        stems: Stems of its content words, in order of first use.
        pairs: Stems of neighbouring words, at least one of them a content word; step references and what is excluded left out.
        steps: Steps it names, at most ``MAX_NAMED``; a reference without an end goes as far as that, and a question for a
            history names all steps up to its last one.
        forms: Which of ``FORMS`` it has, as 0.0 or 1.0.
        yes_no: Whether it asks for yes or no.
        asks_when: Whether it begins with "when".
        asks_for_actions: Whether it asks to list actions, or the history of something.
        excluded: Actions it does not want, in lower case; empty where it says nothing.
    """

    text: str
    tokens: tuple[str, ...]
    stems: tuple[str, ...]
    pairs: frozenset[tuple[str, str]]
    steps: frozenset[int]
    forms: dict[str, float]
    yes_no: bool
    asks_when: bool
    asks_for_actions: bool
    excluded: str


@lru_cache(256)
def view_question(text: str) -> QuestionView:
    """Analyse a question; any text."""
    tokens = words(text)
    content = [stem(token) for token in tokens if token not in FUNCTION_WORDS]
    lowered = text.lower()
    references = parse_references(text, LARGEST_STEP)
    asks_history = ASKED_HISTORY.search(lowered) is not None
    steps = frozenset(references.indices[:MAX_NAMED])
    excluded = EXCLUDED.search(text)
    return QuestionView(
        text=text,
        tokens=tokens,
        stems=tuple(dict.fromkeys(content)),
        pairs=_pairs(_without(text, [*((found.start, found.end) for found in references.found), *_span(excluded)])),
        steps=frozenset(range(max(steps) + 1)) if asks_history and steps else steps,
        forms={name: float(pattern.search(lowered) is not None) for name, pattern in FORMS.items()},
        yes_no=YES_NO.match(text.strip()) is not None,
        asks_when=lowered.lstrip().startswith("when"),
        asks_for_actions=asks_history or ASKED_ACTIONS.search(lowered) is not None,
        excluded=excluded[1].lower() if excluded else "",
    )


def stem_pairs(tokens: Sequence[str]) -> frozenset[tuple[str, str]]:
    """Stems of neighbouring words, at least one of them a content word."""
    return frozenset(
        (stem(first), stem(second))
        for first, second in pairwise(tokens)
        if first not in FUNCTION_WORDS or second not in FUNCTION_WORDS
    )


def _pairs(pieces: Iterable[str]) -> frozenset[tuple[str, str]]:
    return frozenset().union(*(stem_pairs(words(piece)) for piece in pieces))


def _span(match: re.Match[str] | None) -> list[tuple[int, int]]:
    return [match.span()] if match else []


def _without(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[str]:
    """What is left of a text around some spans."""
    position = 0
    for start, end in sorted(spans):
        yield text[position : max(start, position)]
        position = max(end, position)
    yield text[position:]
