"""Cutting evidence to a number of tokens, piece by piece."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mesa_pipeline import subsets
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.types import ComposedEvidence, Evidence, EvidenceItem


def exact_tokens(composed: ComposedEvidence, counter: TokenCounter) -> int:
    """Tokens of composed evidence, by its sections or as one text, whichever is more: a counter need not be additive."""
    return max(composed.tokens, counter.count(composed.text))


def compose_all(evidence: Mapping[str, Evidence], counter: TokenCounter) -> ComposedEvidence:
    """Everything given, composed; nothing gives no section."""
    return Composer(evidence, counter).compose(subsets.FULL_SUBSET)


def cut_to_fit(evidence: Evidence, limit: int, counter: TokenCounter, beside: Mapping[str, Evidence] | None = None) -> Evidence:
    """As much of a structure's evidence as fits; empty where nothing does.

    The pieces are taken by falling score, those without one as they stand, each whole if it still fits; then the first that
    did not is cut short to fill what room is left. What is kept stands in the order of the original.

    Args:
        evidence: What the structure returned.
        limit: Most tokens of everything composed, headings included.
        counter: Counts them.
        beside: Evidence of other structures that is read too, and stays as it is.
    """
    room = _Room(limit, counter, beside or {}, evidence)
    kept: dict[int, EvidenceItem] = {}
    left_out: list[int] = []
    spare = limit - room.tokens(kept)
    for position in _by_score(evidence.items):
        item = evidence.items[position]
        is_hopeless = not item.is_record and counter.count(item.text) > spare  # saves composing hundreds of segments
        if not is_hopeless and (spent := room.tokens(kept | {position: item})) <= limit:
            kept[position], spare = item, limit - spent
        else:
            left_out.append(position)
    if not left_out:
        return evidence
    kept |= _cut_short(left_out[0], kept, room)
    return replace(room.with_items(kept), truncated=True)


@dataclass(frozen=True)
class _Room:
    """What may still be read of one structure."""

    limit: int
    counter: TokenCounter
    beside: Mapping[str, Evidence]
    evidence: Evidence

    def tokens(self, items: Mapping[int, EvidenceItem]) -> int:
        """Tokens of everything read with these of the structure's pieces, by position."""
        tried = {**self.beside, self.evidence.structure: self.with_items(items)}
        return exact_tokens(compose_all(tried, self.counter), self.counter)

    def with_items(self, items: Mapping[int, EvidenceItem]) -> Evidence:
        return replace(self.evidence, items=tuple(items[position] for position in sorted(items)))


def _by_score(items: Sequence[EvidenceItem]) -> Iterable[int]:
    return sorted(range(len(items)), key=lambda position: -(items[position].score or 0.0))


def _cut_short(position: int, kept: Mapping[int, EvidenceItem], room: _Room) -> dict[int, EvidenceItem]:
    """The longest beginning found, by halving, of one piece that fits beside those kept; none where not a character does."""
    item = room.evidence.items[position]
    best: dict[int, EvidenceItem] = {}
    low, high = 0, len(item.text)
    while high - low > 1:
        middle = (low + high) // 2
        tried = {position: replace(item, text=item.text[:middle].rstrip(), is_record=False)}
        if tried[position].text and room.tokens({**kept, **tried}) <= room.limit:
            low, best = middle, tried
        else:
            high = middle
    return best
