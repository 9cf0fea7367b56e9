"""BM25 over the texts of one episode: postings held in arrays, exact scores, plain data.

``rank-bm25`` and ``bm25s`` are the references (see the tests). Neither fits: the former keeps one dictionary a document and
scans all of them for every query term, the latter knows no floored inverse document frequency and fixes k1 and b when it
indexes, where here they belong to reading.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from mesa_pipeline.config import Bm25Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stores import Match
from mesa_pipeline.stores.tokenizers import open_tokenizer


@dataclass(frozen=True)
class Postings:
    """Which terms stand in which documents, and how often.

    Attributes:
        terms: Distinct terms, sorted.
        offsets: Shape ``(terms + 1,)``, int64: the postings of term t are ``offsets[t]:offsets[t + 1]``.
        documents: Shape ``(postings,)``, int32 document positions, ascending within a term.
        frequencies: Shape ``(postings,)``, int32 occurrences.
        lengths: Shape ``(documents,)``, int64 terms of each document.
    """

    terms: tuple[str, ...]
    offsets: np.ndarray
    documents: np.ndarray
    frequencies: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, documents: Sequence[Sequence[str]]) -> Self:
        """Count the terms of tokenised documents."""
        found: dict[str, list[tuple[int, int]]] = {}
        for position, terms in enumerate(documents):
            for term, frequency in Counter(terms).items():
                found.setdefault(term, []).append((position, frequency))
        ordered = sorted(found)
        pairs = np.array([pair for term in ordered for pair in found[term]], dtype=np.int32).reshape(-1, 2)
        sizes = np.array([len(found[term]) for term in ordered], dtype=np.int64)
        return cls(
            terms=tuple(ordered),
            offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            documents=np.ascontiguousarray(pairs[:, 0]),
            frequencies=np.ascontiguousarray(pairs[:, 1]),
            lengths=np.array([len(terms) for terms in documents], dtype=np.int64),
        )

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Position of every term."""
        return {term: position for position, term in enumerate(self.terms)}

    @cached_property
    def document_frequencies(self) -> np.ndarray:
        """Shape ``(terms,)``: in how many documents each term stands."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Bm25Index:
    """Scores the documents of ``postings`` against queries.

    Args:
        postings: The documents' terms.
        settings: Variant, k1 and b, and the tokenizer that cut the documents.
    """

    postings: Postings
    settings: Bm25Settings

    @classmethod
    def build(cls, texts: Sequence[str], settings: Bm25Settings) -> Self:
        """Index texts in order."""
        tokenize = open_tokenizer(settings.tokenizer)
        return cls(Postings.of([tokenize(text) for text in texts]), settings)

    @classmethod
    def restore(cls, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray], settings: Bm25Settings) -> Self:
        """Inverse of ``data`` and ``arrays``.

        Raises:
            ArtifactError: Another tokenizer cut the documents.
        """
        if data["tokenizer"] != settings.tokenizer:
            raise ArtifactError(
                f"the text index was made with the tokenizer {data['tokenizer']!r}, the settings ask for "
                f"{settings.tokenizer!r}; build the memory again"
            )
        stored = (arrays[name] for name in ("offsets", "documents", "frequencies", "lengths"))
        return cls(Postings(tuple(data["terms"]), *stored), settings)

    @property
    def data(self) -> dict[str, Any]:
        """What JSON can hold of the index."""
        return {"tokenizer": self.settings.tokenizer, "terms": list(self.postings.terms)}

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The rest of the index, for ``.npz``."""
        postings = self.postings
        return {
            "offsets": postings.offsets,
            "documents": postings.documents,
            "frequencies": postings.frequencies,
            "lengths": postings.lengths,
        }

    def scores(self, query: str) -> np.ndarray:
        """Score of every document, shape ``(documents,)``, float64; a term that stands twice in the query counts twice."""
        scores = np.zeros(len(self.postings.lengths))
        for term, times in Counter(open_tokenizer(self.settings.tokenizer)(query)).items():
            position = self.postings.positions.get(term)
            if position is not None:
                found = slice(self.postings.offsets[position], self.postings.offsets[position + 1])
                rarity = self._inverse_document_frequencies[position]
                scores[self.postings.documents[found]] += times * self._weights(rarity, found)
        return scores

    def impacts(self) -> np.ndarray:
        """What a term, standing once in a query, adds to a document's score: shape ``(postings,)``, float64, in their order."""
        rarities = np.repeat(self._inverse_document_frequencies, self.postings.document_frequencies)
        return self._weights(rarities, slice(None))

    def search(self, query: str, k: int) -> list[Match]:
        """The ``k`` best documents; see ``TextIndex``."""
        scores = self.scores(query)
        best = np.argsort(-scores, kind="stable")[:k]
        return [Match(int(position), float(scores[position])) for position in best]

    def _weights(self, rarities: np.ndarray, found: slice) -> np.ndarray:
        """Of the postings found; the inverse document frequencies are one for each, or one for all."""
        frequencies = self.postings.frequencies[found]
        saturation = frequencies + self._length_norms[self.postings.documents[found]]
        factor = self.settings.k1 + 1 if self.settings.variant == "okapi" else 1.0
        weights: np.ndarray = rarities * factor * frequencies / saturation
        return weights

    @cached_property
    def _length_norms(self) -> np.ndarray:
        lengths = self.postings.lengths.astype(np.float64)
        relative = lengths / lengths.mean() if lengths.any() else lengths
        norms: np.ndarray = self.settings.k1 * (1 - self.settings.b + self.settings.b * relative)
        return norms

    @cached_property
    def _inverse_document_frequencies(self) -> np.ndarray:
        counts = self.postings.document_frequencies.astype(np.float64)
        absent = len(self.postings.lengths) - counts
        if self.settings.variant == "lucene":
            smoothed: np.ndarray = np.log1p((absent + 0.5) / (counts + 0.5))
            return smoothed
        plain = np.log(absent + 0.5) - np.log(counts + 0.5)
        floor = self.settings.epsilon * math.fsum(plain) / max(len(plain), 1)
        return np.where(plain < 0, floor, plain)
