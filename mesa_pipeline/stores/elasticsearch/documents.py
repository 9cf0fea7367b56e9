"""What stands in the index: a document for each window, and one for each memory that says it is whole.

A window's document holds the impacts of its terms, each a term's share in the window's score where it stands once in a query.
They stand there twice: as features of a sparse vector, which the server ranks by and of which it keeps 9 significant bits, and
as text in ``exact``, which is not indexed and from which a client adds up the score bit by bit as ``Bm25Index`` does. As text,
because nothing on the way may read a number and write another.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mesa_pipeline.artifacts import dump_json, fingerprint
from mesa_pipeline.config import Bm25Settings
from mesa_pipeline.stores import Place
from mesa_pipeline.stores.bm25 import Bm25Index

FORMAT = 1
META = {"made_by": "mesa_pipeline", "format": FORMAT}
WINDOW, MEMORY = "window", "memory"
MAPPINGS: Mapping[str, Any] = {
    "dynamic": "strict",
    "_meta": META,
    "_source": {"excludes": ["impacts"]},
    "properties": {
        "kind": {"type": "keyword"},
        "scope": {"type": "keyword"},
        "place": {"type": "keyword"},
        "version": {"type": "keyword"},
        "position": {"type": "integer"},
        "impacts": {"type": "sparse_vector"},
        "exact": {"type": "object", "enabled": False},
        "about": {"type": "keyword", "index": False, "doc_values": False},
        "windows": {"type": "integer", "index": False},
        "unranked": {"type": "boolean", "index": False},
    },
}
SMALLEST_FEATURE, LARGEST_FEATURE = 2.0**-126, 2.0**100
"""A feature is a positive normal float32, and sums of them must stay finite."""
READABLE = re.compile(r"[a-z0-9_]{1,40}")
HASHED = "~"
Query = dict[str, Any]


@dataclass(frozen=True)
class Address:
    """Where the documents of one memory are, as keywords of bounded length.

    Attributes:
        scope: Which namespace, dataset and structure.
        place: Which episode of them.
        version: Which memory of the episode, ranked by which settings, in which format.
        about: The same for people to read.
    """

    scope: str
    place: str
    version: str
    about: str

    @classmethod
    def of(cls, namespace: str, place: Place, bm25: Bm25Settings) -> Self:
        """The address of a place, whose windows are ranked by these settings."""
        return cls(
            scope=scope_of(namespace, place.dataset, place.structure),
            place=place_of(namespace, place.dataset, place.structure, place.episode),
            version=fingerprint(FORMAT, place.version, bm25.model_dump()),
            about=dump_json([namespace, *place]),
        )

    @property
    def keywords(self) -> dict[str, str]:
        return {"scope": self.scope, "place": self.place, "version": self.version}

    @property
    def windows(self) -> Query:
        """Finds the windows."""
        return every({"kind": WINDOW, "place": self.place, "version": self.version})

    @property
    def other_versions(self) -> Query:
        """Finds whatever is there of other memories of the episode."""
        return {"bool": {"filter": [{"term": {"place": self.place}}], "must_not": [{"term": {"version": self.version}}]}}


def scope_of(namespace: str, dataset: str, structure: str) -> str:
    """Keyword of all memories that one structure has of one dataset."""
    return fingerprint("scope", namespace, dataset, structure)


def place_of(namespace: str, dataset: str, structure: str, episode: str) -> str:
    """Keyword of all memories that one structure has of one episode, and id of the document that vouches for one."""
    return fingerprint("place", namespace, dataset, structure, episode)


def every(keywords: Mapping[str, str]) -> Query:
    """Finds documents with all of these keywords."""
    return {"bool": {"filter": [{"term": {name: value}} for name, value in keywords.items()]}}


def others_in_scope(scope: str, places: Sequence[str], size: int) -> Iterator[Query]:
    """Find what a scope has outside of ``places``; a query names at most ``size`` of them, and asks about its own interval."""
    ordered = sorted(places)
    chunks = [ordered[start : start + size] for start in range(0, len(ordered), size)] or [[]]
    for number, chunk in enumerate(chunks):
        interval = {"gte": chunk[0]} if number else {}
        if number + 1 < len(chunks):
            interval["lt"] = chunks[number + 1][0]
        within = [{"range": {"place": interval}}] if interval else []
        excluded = [{"terms": {"place": chunk}}] if chunk else []
        yield {"bool": {"filter": [{"term": {"scope": scope}}, *within], "must_not": excluded}}


def feature_name(term: str) -> str:
    """A term as the name of a feature and of a field: short, without dots, of one byte a character; others become hashes."""
    if READABLE.fullmatch(term):
        return term
    return HASHED + hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def can_be_ranked(index: Bm25Index) -> bool:
    """Whether every impact can be a feature; okapi's may be negative."""
    impacts = index.impacts()
    impacts = impacts[impacts != 0]
    return bool(np.all((impacts >= SMALLEST_FEATURE) & (impacts <= LARGEST_FEATURE)))


def memory_document(address: Address, windows: int, ranked: bool) -> dict[str, Any]:
    """The document that vouches for a memory; it is written last."""
    return {"kind": MEMORY, **address.keywords, "about": address.about, "windows": windows, "unranked": not ranked}


def window_actions(address: Address, index: Bm25Index, ranked: bool) -> Iterator[dict[str, Any]]:
    """What a bulk request writes: the windows in order of position, each under an id of its own."""
    for position, impacts in enumerate(window_impacts(index)):
        features = {"impacts": impacts} if ranked and impacts else {}
        exact = {name: impact.hex() for name, impact in impacts.items()}
        source = {"kind": WINDOW, **address.keywords, "position": position, "exact": exact, **features}
        yield {"_op_type": "index", "_id": f"{address.place}-{address.version}-{position}", "_source": source}


def window_impacts(index: Bm25Index) -> Iterator[dict[str, float]]:
    """Impacts of every document by feature name; those that are zero add nothing and are left out."""
    postings, impacts = index.postings, index.impacts()
    names = [feature_name(term) for term in postings.terms]
    terms = np.repeat(np.arange(len(names)), postings.document_frequencies)
    order = np.argsort(postings.documents, kind="stable")
    ends = np.cumsum(np.bincount(postings.documents, minlength=len(postings.lengths)))
    for found in np.split(order, ends)[: len(postings.lengths)]:
        yield {names[terms[posting]]: float(impacts[posting]) for posting in found if impacts[posting]}
