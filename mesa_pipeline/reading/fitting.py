"""Cutting one structure's evidence to a number of tokens, for when not even the smallest evidence fits a budget."""

from collections.abc import Sequence
from dataclasses import replace

from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.subsets import encode
from mesa_pipeline.types import ComposedEvidence, Evidence, EvidenceItem


def exact_tokens(composed: ComposedEvidence, counter: TokenCounter) -> int:
    """Tokens of composed evidence, by its sections or as one text, whichever is more: a counter need not be additive."""
    return max(composed.tokens, counter.count(composed.text))


def cut_to_fit(evidence: Evidence, limit: int, counter: TokenCounter) -> Evidence:
    """As much of a structure's evidence as fits when read alone, heading included; empty where nothing does.

    The pieces are taken by falling score, those without one as they stand, each whole if it still fits; then the first that
    did not is cut short to fill what room is left. What is kept stands in the order of the original.

    Args:
        evidence: What the structure returned.
        limit: Most tokens of the composed section.
        counter: Counts them.
    """
    kept: dict[int, EvidenceItem] = {}
    left_out: list[int] = []
    for position in _by_score(evidence.items):
        if _fits(evidence, kept | {position: evidence.items[position]}, limit, counter):
            kept[position] = evidence.items[position]
        else:
            left_out.append(position)
    if left_out:
        kept |= _cut_short(evidence, kept, left_out[0], limit, counter)
    return _with_items(evidence, kept, truncated=evidence.truncated or bool(left_out))


def _by_score(items: Sequence[EvidenceItem]) -> list[int]:
    return sorted(range(len(items)), key=lambda position: -(items[position].score or 0.0))


def _cut_short(
    evidence: Evidence, kept: dict[int, EvidenceItem], position: int, limit: int, counter: TokenCounter
) -> dict[int, EvidenceItem]:
    """The longest beginning found, by halving, of one piece that fits beside those kept; none where not a word does."""
    item = evidence.items[position]
    best: dict[int, EvidenceItem] = {}
    low, high = 0, len(item.text)
    while high - low > 1:
        middle = (low + high) // 2
        tried = {position: replace(item, text=item.text[:middle].rstrip(), is_record=False)}
        if tried[position].text and _fits(evidence, kept | tried, limit, counter):
            low, best = middle, tried
        else:
            high = middle
    return best


def _fits(evidence: Evidence, items: dict[int, EvidenceItem], limit: int, counter: TokenCounter) -> bool:
    tried = _with_items(evidence, items, evidence.truncated)
    composed = Composer({evidence.structure: tried}, counter).compose(encode([evidence.structure]))
    return exact_tokens(composed, counter) <= limit


def _with_items(evidence: Evidence, items: dict[int, EvidenceItem], truncated: bool) -> Evidence:
    return Evidence(evidence.structure, tuple(items[position] for position in sorted(items)), truncated)
