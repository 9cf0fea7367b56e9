"""Which units of the evidence bear on a question: word overlap weighted by rarity, and the steps named.

Word statistics come from the evidence at hand and from nothing else. What depends on a section's text alone is computed once
and remembered by the text; a subset of structures then only adds its sections up.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mesa_pipeline.reading.passages import Passage, Unit, read_passages, split_section, words
from mesa_pipeline.reading.questions import FUNCTION_WORDS, QuestionView, stem

REMEMBERED_CHARS = 3_000_000
REMEMBERED_SECTIONS = 24
NEIGHBOUR_REFERENCE = 0.3
PARTIAL_REFERENCE = 0.5
REFERENCE_SHARE = 0.5
PASSAGE_SHARE = 0.2
BACKGROUND_TEXTS = 20
FEW_TEXTS = 10
BACKGROUND_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A passage with the positions of its units by word stem."""

    passage: Passage
    tokens: frozenset[str]
    postings: dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class SectionIndex:
    """A section's passages and its word statistics.

    Attributes:
        passages: The passages, in order.
        units: Number of units of all of them.
        stems: In how many passages each stem is.
        tokens: In how many units each word is.
        heads: In how many passages a line begins like this.
        by_step: Words told of each step that a passage is about.
    """

    passages: tuple[IndexedPassage, ...]
    units: int
    stems: Counter[str]
    tokens: Counter[str]
    heads: Counter[tuple[str, ...]]
    by_step: dict[int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit with what makes it relevant; every figure is in [0, 1].

    Attributes:
        matched: Share of the question's weight that its words match.
        passage_matched: The same for its passage.
        nearby_matched: The best ``passage_matched`` of the steps right before and after.
        reference: 1 for a step the question names, less for a text about several steps or a neighbouring step.
        shared: Whether another section has it too.
        order: Position among the candidates in the order of the evidence.
    """

    unit: Unit
    matched: float
    passage_matched: float
    nearby_matched: float
    reference: float
    shared: bool
    order: int

    @property
    def priority(self) -> float:
        return self.matched + REFERENCE_SHARE * self.reference + PASSAGE_SHARE * self.passage_matched


@dataclass(frozen=True)
class Material:
    """The evidence of one subset, as statistics."""

    sections: tuple[SectionIndex, ...]
    passages: int
    units: int

    def rarity(self, token: str) -> float:
        """Inverse unit frequency of a word, in [0, 1]."""
        count = sum(section.tokens[token] for section in self.sections if token in section.tokens)
        return _rarity(count, self.units, BACKGROUND_SHARE if token in FUNCTION_WORDS else 0.0)

    def stem_rarity(self, piece: str) -> float:
        """Inverse passage frequency of a stem, in [0, 1]; 0 where no passage has it."""
        count = sum(section.stems[piece] for section in self.sections if piece in section.stems)
        return _rarity(count, self.passages) if count else 0.0

    def repetition(self, head: tuple[str, ...]) -> float:
        """Share of passages, beside one, with a line that begins like this; few passages count as ``FEW_TEXTS``."""
        count = sum(section.heads.get(head, 0) for section in self.sections)
        return max(count - 1, 0) / max(self.passages, FEW_TEXTS)

    def step_tokens(self, step: int) -> frozenset[str] | None:
        """Words told of one step; ``None`` where no passage is about it alone."""
        found = [section.by_step[step] for section in self.sections if step in section.by_step]
        return frozenset().union(*found) if found else None


@dataclass
class SectionMemory:
    """Remembers analysed text, least recently used out first.

    Attributes:
        max_chars: Most characters of analysed pieces to remember.
        max_sections: Most sections to remember.
    """

    max_chars: int = REMEMBERED_CHARS
    max_sections: int = REMEMBERED_SECTIONS
    _pieces: "OrderedDict[str, tuple[IndexedPassage, ...]]" = field(default_factory=OrderedDict)
    _sections: "OrderedDict[str, SectionIndex]" = field(default_factory=OrderedDict)
    _chars: int = 0

    def index(self, text: str) -> SectionIndex:
        """The section's index, made on first sight of its text."""
        if text in self._sections:
            self._sections.move_to_end(text)
            return self._sections[text]
        passages = tuple(indexed for piece in split_section(text) for indexed in self._piece(piece))
        self._sections[text] = index_section(passages)
        while len(self._sections) > self.max_sections:
            self._sections.popitem(last=False)
        return self._sections[text]

    def _piece(self, piece: str) -> tuple[IndexedPassage, ...]:
        if piece in self._pieces:
            self._pieces.move_to_end(piece)
            return self._pieces[piece]
        indexed = tuple(index_passage(passage) for passage in read_passages(piece))
        self._pieces[piece] = indexed
        self._chars += len(piece)
        while self._chars > self.max_chars and len(self._pieces) > 1:
            dropped, _ = self._pieces.popitem(last=False)
            self._chars -= len(dropped)
        return indexed


def index_passage(passage: Passage) -> IndexedPassage:
    """Positions of a passage's units by stem; what someone said is found by the speaker's name too."""
    postings: dict[str, list[int]] = {}
    for position, unit in enumerate(passage.units):
        for piece in {stem(token): None for token in (*unit.tokens, *words(unit.source.speaker))}:
            postings.setdefault(piece, []).append(position)
    tokens = frozenset(token for unit in passage.units for token in unit.tokens)
    return IndexedPassage(passage, tokens, {piece: tuple(positions) for piece, positions in postings.items()})


def index_section(passages: tuple[IndexedPassage, ...]) -> SectionIndex:
    """Word statistics of a section."""
    stems: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    heads: Counter[tuple[str, ...]] = Counter()
    by_step: dict[int, frozenset[str]] = {}
    units = 0
    for indexed in passages:
        units += len(indexed.passage.units)
        stems.update(indexed.postings.keys())
        for unit in indexed.passage.units:
            tokens.update(set(unit.tokens))
        heads.update({unit.head for unit in indexed.passage.units})
        step = indexed.passage.source.step
        if step is not None:
            by_step[step] = by_step.get(step, frozenset()) | indexed.tokens
    return SectionIndex(passages, units, stems, tokens, heads, by_step)


def gather(sections: Sequence[SectionIndex]) -> Material:
    """Statistics over all sections of a subset."""
    passages = sum(len(section.passages) for section in sections)
    return Material(tuple(sections), max(passages, 1), max(sum(section.units for section in sections), 1))


def find_candidates(question: QuestionView, material: Material, limit: int) -> list[Candidate]:
    """The units with the highest priority, at most ``limit``, best first; equal ones in the order of the evidence."""
    weights = {piece: rarity for piece in question.stems if (rarity := material.stem_rarity(piece)) > 0.0}
    total = sum(weights.values()) or 1.0
    found: dict[tuple[str, tuple[int, ...]], Candidate] = {}
    passages = [indexed for section in material.sections for indexed in section.passages]
    matched = [sum(weights[piece] for piece in weights if piece in indexed.postings) / total for indexed in passages]
    by_step = _best_by_step(passages, matched)
    for indexed, share in zip(passages, matched, strict=True):
        source = indexed.passage.source
        reference = _reference(question, source.steps)
        if not share and not reference:
            continue
        step = source.step
        nearby = 0.0 if step is None else max(by_step.get(step - 1, 0.0), by_step.get(step + 1, 0.0))
        for position, weight in _matched_units(indexed, weights, bool(reference)).items():
            unit = indexed.passage.units[position]
            key = (unit.text, source.steps)
            order = found[key].order if key in found else len(found)
            found[key] = Candidate(unit, weight / total, share, nearby, reference, key in found, order)
    return sorted(found.values(), key=lambda candidate: -candidate.priority)[:limit]


def _rarity(count: int, size: int, background_share: float = 0.0) -> float:
    """Inverse frequency in ``size`` texts at hand and some imagined ones, without which a word would be rare in none of few."""
    size += BACKGROUND_TEXTS
    return max(math.log((size + 1) / (count + background_share * BACKGROUND_TEXTS + 0.5)) / math.log(2 * size + 2), 0.0)


def _best_by_step(passages: Iterable[IndexedPassage], matched: Iterable[float]) -> dict[int, float]:
    best: dict[int, float] = {}
    for indexed, share in zip(passages, matched, strict=True):
        step = indexed.passage.source.step
        if step is not None and share > best.get(step, 0.0):
            best[step] = share
    return best


def _matched_units(indexed: IndexedPassage, weights: dict[str, float], with_rest: bool) -> dict[int, float]:
    found = dict.fromkeys(range(len(indexed.passage.units)), 0.0) if with_rest else {}
    for piece, weight in weights.items():
        for position in indexed.postings.get(piece, ()):
            found[position] = found.get(position, 0.0) + weight
    return found


def _reference(question: QuestionView, steps: tuple[int, ...]) -> float:
    if not question.steps or not steps:
        return 0.0
    if len(steps) > 1:
        return PARTIAL_REFERENCE if any(step in question.steps for step in steps) else 0.0
    step = steps[0]
    if step in question.steps:
        return 1.0
    return NEIGHBOUR_REFERENCE if step - 1 in question.steps or step + 1 in question.steps else 0.0
