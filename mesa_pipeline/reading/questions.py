"""What a reader without a language model makes of a question: its words, the steps it names, and the form it has."""

import re
from dataclasses import dataclass
from functools import lru_cache

from mesa_pipeline.reading.passages import words
from mesa_pipeline.structures.step_references import parse_references

LARGEST_STEP = 9999
MAX_NAMED = 4096
FUNCTION_WORDS = frozenset(
    """about above after again all also am and any are as at be because been before being below between both but by can could did do
    does doing down during each few for from further had has have having he her here hers him his how i if in into is it its itself
    just me more most my no nor not now of off on once only or other our out over own same she should so some such than that their
    them then there these they this those through to too under until up very was we were what when where which while who whom why
    will with would you your s t re ve ll d m don didn doesn isn wasn couldn won""".split()
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
    "asks_evidence": re.compile(r"\bevidence\b|\bidentify\b|\btrace\b|\bdescribe\b|\bsteps\b"),
}
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
        tokens: Its words in lower case, articles left out.
        stems: Stems of its content words, in order of first use.
        pairs: Stems of neighbouring words, at least one of them a content word.
        steps: Steps it names, at most ``MAX_NAMED``; a reference without an end goes as far as that.
        forms: Which of ``FORMS`` it has, as 0.0 or 1.0 in that order.
        yes_no: Whether it asks for yes or no.
    """

    text: str
    tokens: tuple[str, ...]
    stems: tuple[str, ...]
    pairs: frozenset[tuple[str, str]]
    steps: frozenset[int]
    forms: dict[str, float]
    yes_no: bool


@lru_cache(256)
def view_question(text: str) -> QuestionView:
    """Analyse a question; any text."""
    tokens = words(text)
    stems = [stem(token) for token in tokens]
    content = [piece for piece, token in zip(stems, tokens, strict=True) if token not in FUNCTION_WORDS]
    pairs = {
        (first, second)
        for first, second in zip(stems, stems[1:], strict=False)
        if first not in FUNCTION_WORDS or second not in FUNCTION_WORDS
    }
    lowered = text.lower()
    return QuestionView(
        text,
        tokens,
        tuple(dict.fromkeys(content)),
        frozenset(pairs),
        frozenset(parse_references(text, LARGEST_STEP).indices[:MAX_NAMED]),
        {name: float(pattern.search(lowered) is not None) for name, pattern in FORMS.items()},
        YES_NO.match(text.strip()) is not None,
    )
