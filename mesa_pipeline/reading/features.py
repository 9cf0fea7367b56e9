"""What the answer model of the extractive reader looks at: figures of question, unit and word, and products of them.

The model estimates for every word of a candidate unit how likely a good answer has it. It knows of no data set, domain or
label; all figures come from the question and the evidence.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mesa_pipeline.reading.passages import ARTICLES, TOKEN, Unit
from mesa_pipeline.reading.questions import FORMS, FUNCTION_WORDS, QuestionView, stem, stem_pairs
from mesa_pipeline.reading.relevance import FEW_TEXTS, Candidate, Material

LEXICON = tuple(sorted(FUNCTION_WORDS))
WORD_IDS = {word: number for number, word in enumerate(LEXICON)}
OTHER_WORD = len(LEXICON)
LONG_WORD = 14
SHORT_UNIT = 4
LARGE_UNIT = 40
MANY_PAIRS = 3
INITIAL_WORDS = 3
COUNTED_STEPS = 24
TYPICAL_WORDS = 20.0
UNKNOWN_NOVELTY = 0.5

QUESTION_FEATURES = ("one", "words", "named", "several", "wide", "yes_no", "queries", *FORMS)
UNIT_FEATURES = (
    *("matched", "relative", "passage", "nearby", "reference", "unnamed", "action", "statement", "shared", "short", "size"),
    *("overlap", "rare", "new", "pairs", "repeated", "alone", "inquiring", "spoken", "named_speaker", "other_speaker"),
)
WORD_FEATURES = (
    *(
        "function",
        "digits",
        "mixed",
        "single",
        "long",
        "capital",
        "initial",
        "position",
        "asked",
        "rarity",
        "adjacent",
        "novel",
    ),
    *("spread", "in_steps", "echo"),
)


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((left, right) for left, _, right in (product.partition("*") for product in text.split()))


PRODUCTS = _pairs("""
    reference*action asks_exact*action asks_exact*reference asks_list*action asks_action*action asks_action*pairs
    asks_list*reference words*action words*statement words*reference wide*reference wide*matched new*reference pairs*action
    hypothetical*reference asked*rarity asked*matched asked*reference asked*words asked*named asked*action asked*yes_no
    asks_step*digits asks_count*digits asks_why*function function*matched function*named function*words digits*reference
    digits*words digits*adjacent digits*novel mixed*words rarity*words rarity*novel rarity*reference novel*reference
    capital*asks_who capital*asks_place capital*asked spread*words repeated*asked asks_change*novel asks_place*adjacent
    asks_list*pairs asks_exact*digits adjacent*matched in_steps*rarity asks_step*matched asks_count*matched nearby*inquiring
    initial*action asks_list*new named_speaker*matched other_speaker*matched repeated*novel
""")
CITATION_PRODUCTS = _pairs("""
    reference*several reference*words reference*asks_why reference*asks_list asks_step*matched asks_step*passage
    named*reference wide*reference asks_step*relative asks_step*action unnamed*asks_step asks_evidence*reference
""")
FEATURES = (*QUESTION_FEATURES, *UNIT_FEATURES, *WORD_FEATURES, *("*".join(pair) for pair in PRODUCTS))
CITATION_FEATURES = (*QUESTION_FEATURES, *UNIT_FEATURES, *("*".join(pair) for pair in CITATION_PRODUCTS))


@dataclass(frozen=True)
class WordTable:
    """All words of some units, one after another.

    Attributes:
        features: Shape ``(words, len(FEATURES))``.
        word_ids: Shape ``(words,)``: position in ``LEXICON``, or ``OTHER_WORD``.
        starts: Position of each unit's first word, and the total at the end.
    """

    features: np.ndarray
    word_ids: np.ndarray
    starts: tuple[int, ...]


class WordClasses(NamedTuple):
    """What a unit's words are on their own.

    Attributes:
        rows: Shape ``(words, 8)``: the first eight of ``WORD_FEATURES``.
        ids: Shape ``(words,)``: position in ``LEXICON``, or ``OTHER_WORD``.
    """

    rows: np.ndarray
    ids: np.ndarray


@lru_cache(8192)
def word_classes(unit: Unit) -> WordClasses:
    """Classes of a unit's words."""
    written = [word for word in TOKEN.findall(unit.text) if word.lower() not in ARTICLES]
    count = len(unit.tokens)
    rows = np.array(
        [
            (
                token in WORD_IDS,
                token.isdigit(),
                not token.isdigit() and ("_" in token or any(character.isdigit() for character in token)),
                len(token) == 1,
                len(token) > LONG_WORD,
                form[0].isupper() and position > 0,
                position < INITIAL_WORDS,
                position / count,
            )
            for position, (token, form) in enumerate(zip(unit.tokens, written, strict=True))
        ],
        dtype=np.float64,
    )
    return WordClasses(rows, np.array([WORD_IDS.get(token, OTHER_WORD) for token in unit.tokens]))


def question_features(question: QuestionView) -> dict[str, float]:
    """Figures of ``QUESTION_FEATURES``."""
    steps = len(question.steps)
    return {
        "one": 1.0,
        "words": math.log((1 + len(question.tokens)) / (1 + TYPICAL_WORDS)),
        "named": float(steps > 0),
        "several": float(steps > 1),
        "wide": float(steps > 3),
        "yes_no": float(question.yes_no),
        "queries": float(question.text.count("?") > 1),
        **question.forms,
    }


class FeatureBuilder:
    """Makes the feature rows of one question's candidates."""

    def __init__(self, question: QuestionView, material: Material, candidates: Sequence[Candidate]) -> None:
        self._question = question
        self._candidates = candidates
        self._asked = frozenset(question.stems)
        self._best = max((candidate.matched for candidate in candidates), default=0.0) or 1.0
        self._material = material
        distinct = {token for candidate in candidates for token in candidate.unit.tokens}
        self._rarity = {token: material.rarity(token) for token in distinct}
        self._is_asked = {token: stem(token) in self._asked for token in distinct}
        self._spread = Counter(token for candidate in candidates for token in set(candidate.unit.tokens))
        self._in_steps = self._count_in_steps()
        self._speakers = {candidate.unit.source.speaker for candidate in candidates} - {""}
        self._named_speakers = {name for name in self._speakers if set(name.lower().split()) & set(question.tokens)}

    def rarity(self, token: str) -> float:
        """How rare a word of the candidates is in the evidence, in [0, 1]."""
        return self._rarity[token]

    def is_asked(self, token: str) -> bool:
        """Whether a word of the candidates is one of the question's content words, inflection aside."""
        return self._is_asked[token]

    def units(self) -> np.ndarray:
        """Question and unit figures, shape ``(candidates, len(QUESTION_FEATURES) + len(UNIT_FEATURES))``."""
        asked = tuple(question_features(self._question).values())
        return np.array([asked + self._unit_row(candidate) for candidate in self._candidates], dtype=np.float64)

    def words(self, units: np.ndarray) -> WordTable:
        """The words of all candidates.

        Args:
            units: What ``units()`` returned.
        """
        classes = [word_classes(candidate.unit) for candidate in self._candidates]
        sizes = [len(known.ids) for known in classes]
        varying = np.array([row for candidate in self._candidates for row in self._word_rows(candidate)], dtype=np.float64)
        own = np.concatenate([np.concatenate([known.rows for known in classes]), varying], axis=1)
        base = np.concatenate([np.repeat(units, sizes, axis=0), own], axis=1)
        features = with_products(base, (*QUESTION_FEATURES, *UNIT_FEATURES, *WORD_FEATURES), PRODUCTS)
        starts = (0, *np.cumsum(sizes).tolist())
        return WordTable(features, np.concatenate([known.ids for known in classes]), starts)

    def _unit_row(self, candidate: Candidate) -> tuple[float, ...]:
        unit, tokens = candidate.unit, candidate.unit.tokens
        count = len(tokens)
        pairs = len(stem_pairs(tokens) & self._question.pairs)
        before = self._before(unit)
        speaker = unit.source.speaker
        return (
            candidate.matched,
            candidate.matched / self._best,
            candidate.passage_matched,
            candidate.nearby_matched,
            candidate.reference,
            float(bool(self._question.steps) and not candidate.reference),
            float(unit.field == "action"),
            float(unit.field == "statement"),
            float(candidate.shared),
            float(count < SHORT_UNIT),
            min(count, LARGE_UNIT) / LARGE_UNIT,
            sum(self._is_asked[token] for token in tokens) / count,
            sum(self._rarity[token] for token in tokens) / count,
            UNKNOWN_NOVELTY if before is None else sum(token not in before for token in tokens) / count,
            min(pairs, MANY_PAIRS) / MANY_PAIRS,
            self._material.repetition(unit.head),
            float(before is None),
            float(unit.text.endswith("?")),
            float(bool(speaker)),
            float(speaker in self._named_speakers),
            float(bool(speaker and self._named_speakers) and speaker not in self._named_speakers),
        )

    def _word_rows(self, candidate: Candidate) -> list[tuple[float, ...]]:
        tokens = candidate.unit.tokens
        before = self._before(candidate.unit)
        asked = [self._is_asked[token] for token in tokens]
        around = [False, *asked, False]
        count, steps = max(len(self._candidates), FEW_TEXTS), max(min(len(self._question.steps), COUNTED_STEPS), 1)
        return [
            (
                asked[position],
                self._rarity[token],
                around[position] or around[position + 2],
                UNKNOWN_NOVELTY if before is None else token not in before,
                (self._spread[token] - 1) / count,
                self._in_steps[token] / steps,
                token in WORD_IDS and token in self._question.tokens,
            )
            for position, token in enumerate(tokens)
        ]

    def _before(self, unit: Unit) -> frozenset[str] | None:
        step = unit.source.step
        return None if step is None else self._material.step_tokens(step - 1)

    def _count_in_steps(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for step in sorted(self._question.steps)[:COUNTED_STEPS]:
            counts.update(self._material.step_tokens(step) or ())
        return counts


def with_products(base: np.ndarray, names: Sequence[str], products: Sequence[tuple[str, str]]) -> np.ndarray:
    """``base``, shape ``(rows, len(names))``, with the product columns appended."""
    column = {name: number for number, name in enumerate(names)}
    left = base[:, [column[pair[0]] for pair in products]]
    right = base[:, [column[pair[1]] for pair in products]]
    return np.concatenate([base, left * right], axis=1)
