"""Token F1 as the two benchmarks define it; the two definitions differ in almost everything.

Both are the official scoring functions, to the last digit before any rounding. A sweep scores each reference against many
predictions, so what depends on the reference alone is remembered.
"""

import re
import string
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache

from mesa_pipeline.datasets import locomo

REMEMBERED_REFERENCES = 4096
REMEMBERED_STEMS = 65_536

_AMA_ARTICLES = frozenset(("a", "an", "the"))
_AMA_SEPARATORS = re.compile(r"[^\w\s]")
_LOCOMO_FILLERS = re.compile(r"\b(a|an|the|and)\b")
_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NO_INFORMATION = ("no information available", "not mentioned")

TokenCounts = Counter[str]


def token_f1(dataset: str, prediction: str, gold: str, qa_type: str | None = None) -> float:
    """Score an answer by the metric of its dataset.

    Args:
        dataset: Name of the dataset; ``locomo`` has a metric of its own, all others use that of AMA-Bench.
        prediction: The answer; any string.
        gold: The reference; any string.
        qa_type: Question type, which LoCoMo's metric depends on.

    Returns:
        A score in [0, 1], higher is better.
    """
    return locomo_f1(prediction, gold, qa_type) if dataset == locomo.DATASET else ama_f1(prediction, gold)


def ama_f1(prediction: str, gold: str) -> float:
    """AMA-Bench's ``compute_f1_score``: case, punctuation and articles do not count, no stemming.

    Two texts that are both empty after this agree (1.0).
    """
    reference = _remembered_ama_counts(gold)
    counts = _count_ama_tokens(prediction)
    return 1.0 if not counts and not reference else _f1(counts, reference)


def locomo_f1(prediction: str, gold: str, qa_type: str | None = None) -> float:
    """LoCoMo's score of one question: F1 over Porter stems, taken apart by question type.

    - multi-hop: prediction and reference are lists parted by commas; the mean, over the reference's parts, of the best F1 of
      any predicted part;
    - open-domain: only what stands before the reference's first semicolon counts;
    - adversarial: 1.0 when the prediction says that nothing is known, whatever the reference.
    """
    if qa_type == locomo.ADVERSARIAL:
        return float(any(phrase in prediction.lower() for phrase in _NO_INFORMATION))
    if qa_type == locomo.MULTI_HOP:
        references = _remembered_locomo_parts(gold)
        parts = [counts for part in dict.fromkeys(prediction.split(",")) if (counts := _count_stems(part))]
        best = [max((_f1(part, reference) for part in parts), default=0.0) for reference in references]
        return sum(best) / len(best)
    if qa_type == locomo.OPEN_DOMAIN:
        gold = gold.split(";", maxsplit=1)[0]
    return _f1(_count_stems(prediction), _remembered_stems(gold))


def _f1(prediction: TokenCounts, reference: TokenCounts) -> float:
    same = sum(min(number, reference[token]) for token, number in prediction.items() if token in reference)
    if not same:
        return 0.0
    precision, recall = same / prediction.total(), same / reference.total()
    return 2 * precision * recall / (precision + recall)


def _count_ama_tokens(text: str) -> TokenCounts:
    words = _AMA_SEPARATORS.sub(" ", text.lower()).split()
    return Counter(word for word in words if word not in _AMA_ARTICLES)


def _count_stems(text: str) -> TokenCounts:
    plain = text.replace(",", "").lower().translate(_DELETE_PUNCTUATION)
    return Counter(map(_stem, _LOCOMO_FILLERS.sub(" ", plain).split()))


@cache
def _stemmer() -> Callable[[str], str]:
    # Imported on first use: the package takes seconds to import, and only LoCoMo needs it.
    from nltk.stem.porter import PorterStemmer

    stem: Callable[[str], str] = PorterStemmer().stem
    return stem


@lru_cache(REMEMBERED_STEMS)
def _stem(word: str) -> str:
    return _stemmer()(word)


@lru_cache(REMEMBERED_REFERENCES)
def _remembered_ama_counts(gold: str) -> TokenCounts:
    return _count_ama_tokens(gold)


@lru_cache(REMEMBERED_REFERENCES)
def _remembered_stems(gold: str) -> TokenCounts:
    return _count_stems(gold)


@lru_cache(REMEMBERED_REFERENCES)
def _remembered_locomo_parts(gold: str) -> tuple[TokenCounts, ...]:
    return tuple(_count_stems(part) for part in gold.split(","))
