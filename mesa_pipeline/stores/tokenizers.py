"""How text becomes terms for lexical search. To add one: a function here and a line in ``TOKENIZERS``.

A tokenizer is a pure function; the same one cuts documents and queries. All lower-case what they return.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

from mesa_pipeline.errors import ConfigError

Tokenizer = Callable[[str], list[str]]

# Longer words are no language: base64 and the like. A stemmer has nothing to find in them.
MAX_STEMMED_CHARS = 40
STEM_CACHE_WORDS = 200_000
# Lucene's English stop words: short enough to leave words such as "up", "down" and "do", which are actions in many logs.
STOP_WORDS = frozenset(
    {
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
        *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
        *("will", "with"),
    }
)
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")


def split_whitespace(text: str) -> list[str]:
    """Lower-cased runs of anything but white space: the paper's BM25 baseline (B.1)."""
    return text.lower().split()


def split_words(text: str) -> list[str]:
    """Lower-cased runs of word characters."""
    return _WORD.findall(text.lower())


def split_identifiers(text: str) -> list[str]:
    """Words, and after each compound one its parts: ``step_notes``, ``stepNotes`` and ``Step2`` also give ``step``."""
    terms: list[str] = []
    for word in _WORD.findall(text):
        terms.append(word.lower())
        parts = _PART.findall(word)
        if len(parts) > 1:
            terms.extend(part.lower() for part in parts)
    return terms


def without_stop_words(split: Tokenizer) -> Tokenizer:
    """The tokenizer without English stop words."""
    return lambda text: [term for term in split(text) if term not in STOP_WORDS]


def stemmed(split: Tokenizer) -> Tokenizer:
    """The tokenizer with every term reduced to its Porter stem."""
    return lambda text: _stem_all(split(text))


TOKENIZERS: dict[str, Tokenizer] = {
    "whitespace": split_whitespace,
    "words": split_words,
    "words-stop": without_stop_words(split_words),
    "words-stem": stemmed(split_words),
    "words-stop-stem": stemmed(without_stop_words(split_words)),
    "identifiers": split_identifiers,
    "identifiers-stop": without_stop_words(split_identifiers),
    "identifiers-stem": stemmed(split_identifiers),
    "identifiers-stop-stem": stemmed(without_stop_words(split_identifiers)),
}


def open_tokenizer(name: str) -> Tokenizer:
    """Look a tokenizer up by name.

    Raises:
        ConfigError: There is none of that name; lists those there are.
    """
    if name not in TOKENIZERS:
        raise ConfigError(f"stores.bm25.tokenizer {name!r} is unknown; known are {', '.join(TOKENIZERS)}")
    return TOKENIZERS[name]


def _stem_all(terms: Iterable[str]) -> list[str]:
    return [term if len(term) > MAX_STEMMED_CHARS else _stem(term) for term in terms]


@lru_cache(maxsize=STEM_CACHE_WORDS)
def _stem(term: str) -> str:
    return _stemmer()(term)


@cache
def _stemmer() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    stem: Callable[[str], str] = PorterStemmer().stem
    return stem
