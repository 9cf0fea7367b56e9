"""Chooses what to quote: the clauses that maximise the expected token F1 of the answer.

With a chance p(w) for every word w that a good answer has it, an answer of n words is expected to share M = sum p(w) words with
a good one, so its F1 is about 2 M / (n + g) where g is the length a good answer is expected to have. The set of clauses with
the largest ratio is found by Dinkelbach's method: for a trial ratio r, every clause run worth more than r a word is taken, then
r is set to the ratio reached; it settles in a few rounds.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from mesa_pipeline.reading.passages import ARTICLES, TOKEN, Unit
from mesa_pipeline.reading.questions import FUNCTION_WORDS

ROUNDS = 3
FIRST_RATIO = 0.15
SMALLEST_RATIO = 0.02
CLAUSE_MARK = re.compile(r"[,;:](?=\s)|[|()\[\]{}\"\n]|\s[-\u2013\u2014>]+\s|[.!?]\s|'\s|\s'")
CITED_WORD = "step"
SHORT_UNIT = 6
SHORTEST_CLAUSE = 3


class Span(NamedTuple):
    """Words ``start`` (inclusive) to ``end`` (exclusive) of a unit."""

    start: int
    end: int


@dataclass(frozen=True)
class Option:
    """A unit that may be quoted.

    Attributes:
        chances: For every word of the unit, how likely a good answer has it.
        clauses: Where a quote may begin and end; adjacent, covering the unit.
        citation: How likely a good answer has the number of the unit's step; 0 where it has none.
    """

    unit: Unit
    chances: Sequence[float]
    clauses: Sequence[Span]
    citation: float = 0.0


@dataclass(frozen=True)
class Quote:
    """Words of a unit."""

    unit: Unit
    span: Span

    @property
    def text(self) -> str:
        """The words as written, with what stands between them; a whole unit is quoted with its punctuation."""
        if self.span == (0, len(self.unit.tokens)):
            return self.unit.text
        places = _places(self.unit)
        return self.unit.text[places[self.span.start].start : places[self.span.end - 1].end]


@dataclass(frozen=True)
class QuotingRules:
    """How to quote.

    Attributes:
        min_words: Words, steps named included, below which the next most relevant unit is quoted whatever it seems worth:
            chances fitted on long logs are low for the rare words that short evidence is made of.
        max_words: Most words of an answer.
        repeat_worth: What a word is worth the second time, as a share of the first; again for the third.
        quote_cost: Words' worth that a quote must have beyond its own, so that an answer is few quotes and not many scraps.
        citation_worth: How likely a good answer has the word "step", which precedes the quotes of every step.
    """

    min_words: int
    max_words: int
    repeat_worth: float
    quote_cost: float
    citation_worth: float


@lru_cache(8192)
def split_clauses(unit: Unit) -> tuple[Span, ...]:
    """Clauses of a unit: what stands between marks of punctuation; a short unit is one clause, scraps join what follows."""
    size = len(unit.tokens)
    if size <= SHORT_UNIT:
        return (Span(0, size),)
    spans = _split(unit, by_function_words=False)
    cuts = [0]
    for span in spans:
        if span.start - cuts[-1] >= SHORTEST_CLAUSE and size - span.start >= SHORTEST_CLAUSE:
            cuts.append(span.start)
    return tuple(Span(*edges) for edges in pairwise([*cuts, size]))


@lru_cache(8192)
def split_phrases(unit: Unit) -> tuple[Span, ...]:
    """Phrases of a unit: what stands between marks of punctuation or function words, and each function word alone."""
    return _split(unit, by_function_words=True)


def choose_quotes(options: Sequence[Option], expected_words: float, rules: QuotingRules) -> list[Quote]:
    """The most relevant units up to a least length, and whatever raises the expected F1 of quoting them, most worth first.

    Args:
        options: Units to choose from, the most relevant first.
        expected_words: Length a good answer is expected to have.
        rules: How to quote.

    Returns:
        Always a quote of the first option, since an answer without what matches best is no answer; none only where there is no
        option.
    """
    ratio = FIRST_RATIO
    draft = _Draft(rules, ratio)
    for _ in range(ROUNDS):
        draft = _Draft(rules, ratio)
        remaining = list(options)
        while remaining and draft.words < max(rules.min_words, 1):
            draft.consider(remaining.pop(0), unconditionally=True)
        for option in sorted(remaining, key=lambda option: -_best_run(option.chances, option.clauses, ratio).worth):
            draft.consider(option)
        ratio = max(draft.shared / (draft.words + expected_words), SMALLEST_RATIO)
    return draft.quotes


@dataclass
class _Draft:
    """An answer in the making under one trial ratio."""

    rules: QuotingRules
    ratio: float
    quotes: list[Quote] = field(default_factory=list)
    shared: float = 0.0
    words: int = 0
    _used: Counter[str] = field(default_factory=Counter)
    _cited: set[int] = field(default_factory=set)

    def consider(self, option: Option, unconditionally: bool = False) -> None:
        chances = self._remaining(option)
        run = _best_run(chances, option.clauses, self.ratio)
        step = option.unit.source.steps[0] if option.unit.source.steps else None
        cited = self._citation(step, option.citation)
        extra = 0 if step is None or step in self._cited else 2
        size = run.span.end - run.span.start + extra
        worth = run.worth + cited - extra * self.ratio
        too_long = self.words + size > self.rules.max_words
        if not unconditionally and (worth <= self.rules.quote_cost * self.ratio or too_long):
            return
        self.quotes.append(Quote(option.unit, run.span))
        self.shared += sum(chances[run.span.start : run.span.end]) + cited
        self.words += size
        self._used.update(option.unit.tokens[run.span.start : run.span.end])
        if extra and step is not None:
            self._cited.add(step)
            self._used.update((CITED_WORD, str(step)))

    def _remaining(self, option: Option) -> list[float]:
        seen = {token: count for token in option.unit.tokens if (count := self._used.get(token))}
        chances: list[float] = []
        for token, chance in zip(option.unit.tokens, option.chances, strict=True):
            times = seen.get(token, 0)
            chances.append(chance * self.rules.repeat_worth**times if times else chance)
            seen[token] = times + 1
        return chances

    def _citation(self, step: int | None, chance: float) -> float:
        if step is None or step in self._cited:
            return 0.0
        worth = self.rules.repeat_worth
        return self.rules.citation_worth * worth ** self._used[CITED_WORD] + chance * worth ** self._used[str(step)]


class _Run(NamedTuple):
    worth: float
    span: Span


def _best_run(chances: Sequence[float], clauses: Sequence[Span], ratio: float) -> _Run:
    """The run of clauses with the largest sum of ``chance - ratio`` (Kadane's algorithm)."""
    best, best_start, best_end = float("-inf"), 0, 0
    worth, start = 0.0, 0
    totals = list(accumulate(chances, initial=0.0))
    for first, end in clauses:
        if worth <= 0:
            worth, start = 0.0, first
        worth += totals[end] - totals[first] - ratio * (end - first)
        if worth > best:
            best, best_start, best_end = worth, start, end
    return _Run(best, Span(best_start, best_end))


def _split(unit: Unit, by_function_words: bool) -> tuple[Span, ...]:
    places = _places(unit)
    cuts = [0]
    for position in range(1, len(unit.tokens)):
        gap = unit.text[places[position - 1].end : places[position].start]
        parted = by_function_words and (unit.tokens[position] in FUNCTION_WORDS or unit.tokens[position - 1] in FUNCTION_WORDS)
        if parted or CLAUSE_MARK.search(gap):
            cuts.append(position)
    return tuple(Span(start, end) for start, end in zip(cuts, [*cuts[1:], len(unit.tokens)], strict=True))


@lru_cache(8192)
def _places(unit: Unit) -> tuple[Span, ...]:
    """Character offsets of the unit's words."""
    return tuple(Span(*match.span()) for match in TOKEN.finditer(unit.text) if match.group().lower() not in ARTICLES)
