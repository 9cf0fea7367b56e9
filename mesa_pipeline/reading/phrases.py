"""Short answers out of what people said: every phrase of the best sentences is weighed, the best one is the answer."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mesa_pipeline.reading.features import QUESTION_FEATURES, UNIT_FEATURES, FeatureBuilder, word_classes
from mesa_pipeline.reading.passages import Unit, words
from mesa_pipeline.reading.questions import FUNCTION_WORDS, QuestionView
from mesa_pipeline.reading.quoting import Span, split_clauses, split_phrases
from mesa_pipeline.reading.relevance import Candidate

MAX_PHRASE = 8
FAR = 20
MANY_SOURCES = 3
LARGE_PHRASE = 5
NUMBER_WORDS = frozenset(words("one two three four five six seven eight nine ten twice once several many few couple"))
PLACE_WORDS = frozenset({"in", "at", "on", "to", "from", "near"})
BEING_WORDS = frozenset({"is", "was", "are", "were", "m", "s"})
CAPITAL, DIGITS = 5, 1

PHRASE_FEATURES = (
    *("length", "one_word", "two_words", "three_words", "large", "asked", "all_asked", "rarity", "rarest", "capital", "digits"),
    *(
        "number_word",
        "near_asked",
        "after_asked",
        "before_asked",
        "clause_asked",
        "whole_clause",
        "whole_unit",
        "first",
        "last",
    ),
    *(
        "function",
        "joined",
        "of",
        "after_to",
        "after_place",
        "after_being",
        "gerund",
        "unasked",
        "agreed",
        "two_clauses",
        "names",
    ),
    *("who*capital", "where*after_place", "where*capital", "count*number_word", "count*digits", "why*gerund", "why*after_to"),
    *(
        "why*large",
        "what*two_words",
        "name*capital",
        "name*near_asked",
        "matched*near_asked",
        "matched*after_asked",
        "matched*asked",
        "matched*rarest",
    ),
)
FEATURES = (*PHRASE_FEATURES, *QUESTION_FEATURES, *UNIT_FEATURES)


class Phrase(NamedTuple):
    """Words of a candidate unit, ``candidate`` being its position among the candidates."""

    candidate: int
    span: Span


class PhraseTable(NamedTuple):
    """Phrases with their features, shape ``(phrases, len(FEATURES))``."""

    phrases: list[Phrase]
    features: np.ndarray


def find_phrases(
    question: QuestionView, candidates: Sequence[Candidate], builder: FeatureBuilder, units: np.ndarray
) -> PhraseTable:
    """All phrases of the candidates.

    Args:
        question: The question.
        candidates: The units to look in.
        builder: Features of the same candidates.
        units: What ``builder.units()`` returned.
    """
    phrases = [Phrase(number, span) for number, candidate in enumerate(candidates) for span in _phrase_spans(candidate.unit)]
    if not phrases:
        return PhraseTable([], np.zeros((0, len(FEATURES))))
    agreed = Counter(candidates[phrase.candidate].unit.tokens[slice(*phrase.span)] for phrase in phrases)
    describe = _Describer(question, builder, agreed)
    own = np.array([describe.row(candidates[phrase.candidate], phrase.span) for phrase in phrases], dtype=np.float64)
    return PhraseTable(phrases, np.concatenate([own, units[[phrase.candidate for phrase in phrases]]], axis=1))


def _phrase_spans(unit: Unit) -> Iterator[Span]:
    """Runs of phrases that begin and end with a content word, within a clause or two."""
    pieces = split_phrases(unit)
    clause_of = _clause_of(unit)
    content = [unit.tokens[piece.start] not in FUNCTION_WORDS for piece in pieces]
    for first, piece in enumerate(pieces):
        if not content[first]:
            continue
        for last in range(first, len(pieces)):
            end = pieces[last].end
            if end - piece.start > MAX_PHRASE or clause_of[end - 1] - clause_of[piece.start] > 1:
                break
            if content[last]:
                yield Span(piece.start, end)


@lru_cache(8192)
def _clause_of(unit: Unit) -> tuple[int, ...]:
    return tuple(number for number, clause in enumerate(split_clauses(unit)) for _ in range(clause.start, clause.end))


class _Describer:
    """Makes the own features of one question's phrases."""

    def __init__(self, question: QuestionView, builder: FeatureBuilder, agreed: Counter[tuple[str, ...]]) -> None:
        self._question = question
        self._builder = builder
        self._agreed = agreed
        lowered = question.text.lower()
        self._where = float(lowered.startswith("where"))
        self._what = float(lowered.startswith("what"))

    def row(self, candidate: Candidate, span: Span) -> tuple[float, ...]:
        unit = candidate.unit
        tokens = unit.tokens[span.start : span.end]
        size = len(tokens)
        content = [token for token in tokens if token not in FUNCTION_WORDS]
        asked = sum(map(self._builder.is_asked, content)) / max(len(content), 1)
        rarities = [self._builder.rarity(token) for token in tokens]
        classes = word_classes(unit).rows[span.start : span.end].mean(axis=0).tolist()
        before = unit.tokens[span.start - 1] if span.start else ""
        shape = {
            "length": math.log(size),
            "two_words": float(size == 2),
            "large": float(size >= LARGE_PHRASE),
            "asked": asked,
            "rarest": max(rarities),
            "capital": classes[CAPITAL],
            "digits": classes[DIGITS],
            "number_word": float(not NUMBER_WORDS.isdisjoint(tokens)),
            "after_to": float(before == "to"),
            "after_place": float(before in PLACE_WORDS),
            "gerund": float(tokens[0].endswith("ing")),
        }
        near, after, *around = self._surroundings(unit, span)
        return (
            *(shape["length"], size == 1, shape["two_words"], size == 3, shape["large"], asked, asked == 1.0),
            *(sum(rarities) / size, shape["rarest"], shape["capital"], shape["digits"], shape["number_word"], near, after),
            *around,
            *(span.start == 0, span.end == len(unit.tokens), 1 - len(content) / size, "and" in tokens, "of" in tokens),
            *(shape["after_to"], shape["after_place"], before in BEING_WORDS, shape["gerund"]),
            sum(token not in self._question.tokens for token in tokens) / size,
            min(self._agreed[tokens] - 1, MANY_SOURCES),
            _clause_of(unit)[span.start] != _clause_of(unit)[span.end - 1],
            any(token in self._question.tokens and token.capitalize() in self._question.text for token in tokens),
            *self._by_form(shape, near),
            *(candidate.matched * figure for figure in (near, after, asked, shape["rarest"])),
        )

    def _surroundings(self, unit: Unit, span: Span) -> tuple[float, ...]:
        """Nearness of asked words, whether some stand before, after, in the same clause; whether clause or unit is whole."""
        clause_of = _clause_of(unit)
        clause = clause_of[span.start]
        asked = [position for position, token in enumerate(unit.tokens) if self._builder.is_asked(token)]
        asked = [position for position in asked if not span.start <= position < span.end]
        distance = min((max(span.start - position, position - span.end + 1) for position in asked), default=FAR)
        return (
            1 / (1 + distance),
            float(any(position < span.start for position in asked)),
            float(any(position >= span.end for position in asked)),
            float(any(clause_of[position] == clause for position in asked)),
            float(span.end - span.start == clause_of.count(clause)),
            float(span.end - span.start == len(unit.tokens)),
        )

    def _by_form(self, shape: dict[str, float], near: float) -> tuple[float, ...]:
        forms = self._question.forms
        who, count, why = forms["asks_who"], forms["asks_count"], forms["asks_why"]
        return (
            who * shape["capital"],
            self._where * shape["after_place"],
            self._where * shape["capital"],
            count * shape["number_word"],
            count * shape["digits"],
            why * shape["gerund"],
            why * shape["after_to"],
            why * shape["large"],
            self._what * shape["two_words"],
            forms["asks_name"] * shape["capital"],
            forms["asks_name"] * near,
        )
