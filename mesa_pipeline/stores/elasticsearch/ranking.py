"""Ranks windows exactly from a server that scores them approximately.

The server returns windows best first by its own score, which is close to the exact one. Windows are fetched with their exact
impacts until none that was not fetched can be among the best, at worst until all were.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stores import Match
from mesa_pipeline.stores.elasticsearch.connection import Connection
from mesa_pipeline.stores.elasticsearch.documents import Address, Query, feature_name
from mesa_pipeline.stores.tokenizers import Tokenizer

TOLERANCE = 2.0**-7
"""Bound on the relative error of the server's scores: features keep 9 significant bits (below 2^-8), sums are float32."""
MAX_FEATURES = 1_000
"""Features of a query: a server allows 1,024 clauses, or more where it has much memory."""
MAX_FIELDS = 64
"""Fields of a window asked for by name; with more of them the window is fetched whole."""
FIRST_CANDIDATES = 16
GROWTH = 4
MAX_CANDIDATES = 1_000
"""Of one reply; a server allows 10,000, and windows may be large."""
PAGE = 200


class Candidate(NamedTuple):
    """A window as the server returned it.

    Attributes:
        position: Position of the window.
        approximate: The server's score.
        exact: The score that ``Bm25Index`` gives.
    """

    position: int
    approximate: float
    exact: float


@dataclass(frozen=True)
class Memory:
    """What a place's own document says.

    Attributes:
        address: Where its windows are.
        windows: How many there are.
        ranked: Whether the server can rank them; if not, all are read for every query.
    """

    address: Address
    windows: int
    ranked: bool


@dataclass(frozen=True)
class ElasticsearchIndex:
    """The windows of one memory; a ``TextIndex``."""

    connection: Connection
    index: str
    memory: Memory
    tokenize: Tokenizer

    def search(self, query: str, k: int) -> list[Match]:
        """The ``k`` best windows; see ``TextIndex``.

        Raises:
            ArtifactError: The windows were replaced or deleted meanwhile.
            MissingDependency: The server cannot be reached.
        """
        times = {feature_name(term): count for term, count in Counter(self.tokenize(query)).items()}
        wanted = min(k, self.memory.windows)
        if not times or not wanted:
            return [Match(position, 0.0) for position in range(wanted)]
        if not self.memory.ranked or len(times) > MAX_FEATURES:
            return best(list(self._all(times)), wanted)
        return self._ranked(times, wanted)

    def _ranked(self, times: Mapping[str, int], wanted: int) -> list[Match]:
        size = max(FIRST_CANDIDATES, GROWTH * wanted)
        while size < MAX_CANDIDATES:
            found = self._candidates(times, size)
            matches = best(found, wanted)
            if len(found) == self.memory.windows or is_settled(found, matches[-1].score):
                return matches
            size *= GROWTH
        return best(list(self._all(times)), wanted)

    def _candidates(self, times: Mapping[str, int], size: int) -> list[Candidate]:
        """The windows that the server ranks first; those that share nothing with the query come last, in order of position."""
        vector = {name: float(count) for name, count in times.items()}
        ranked = {"sparse_vector": {"field": "impacts", "query_vector": vector, "prune": False}}
        query: Query = {"bool": {**self.memory.address.windows["bool"], "should": [ranked], "minimum_should_match": 0}}
        hits = self._hits(times, query=query, sort=[{"_score": "desc"}, {"position": "asc"}], size=size)
        return [Candidate(hit["sort"][1], hit["sort"][0], exact_score(times, hit["_source"])) for hit in hits]

    def _all(self, times: Mapping[str, int]) -> Iterator[Candidate]:
        """Every window, page by page, in order of position."""
        seen: dict[str, Any] = {}
        for _ in range(0, self.memory.windows, PAGE):
            query = self.memory.address.windows
            hits = self._hits(times, query=query, sort=[{"position": "asc"}], size=PAGE, **seen)
            for hit in hits:
                yield Candidate(hit["sort"][0], 0.0, exact_score(times, hit["_source"]))
            seen = {"search_after": hits[-1]["sort"]}

    def _hits(self, times: Mapping[str, int], **request: Any) -> list[dict[str, Any]]:
        """What a request finds, once it is sure that all windows are still there."""
        fields = [f"exact.{name}" for name in times] if len(times) <= MAX_FIELDS else ["exact"]
        with self.connection.client() as client:
            reply = client.search(
                index=self.index,
                source={"includes": fields},
                track_total_hits=True,
                allow_partial_search_results=False,
                **request,
            )
        found = reply["hits"]["total"]["value"]
        if found != self.memory.windows:
            raise ArtifactError(
                f"{found} of {self.memory.windows} windows of {self.memory.address.about} are in {self.index} at "
                f"{self.connection.url}: they were replaced or deleted meanwhile; run `mesa build` again"
            )
        hits: list[dict[str, Any]] = reply["hits"]["hits"]
        return hits


def exact_score(times: Mapping[str, int], source: Mapping[str, Any]) -> float:
    """The score of a window, added up in the order in which ``Bm25Index`` does.

    Args:
        times: How often each feature stands in the query, in the order of their first occurrence.
        source: The window's document, or the part of it that the query needs.
    """
    impacts = source.get("exact", {})
    score = 0.0
    for name, count in times.items():
        if name in impacts:
            score += count * float.fromhex(impacts[name])
    return score


def best(found: Sequence[Candidate], k: int) -> list[Match]:
    """The ``k`` best by exact score, equal ones in order of position."""
    ordered = sorted(found, key=lambda candidate: (-candidate.exact, candidate.position))
    return [Match(candidate.position, candidate.exact) for candidate in ordered[:k]]


def is_settled(found: Sequence[Candidate], least: float) -> bool:
    """Whether no window beyond those found can belong among the matches, the last of which scores ``least``.

    Windows beyond score at most what the server gave the last one found, or a little more in truth. It is not taken at its word
    where a score that can be checked is further from the truth than that. Where the last one found has score 0, so have all
    beyond, and they come later.
    """
    if any(not _close(candidate.approximate, candidate.exact) for candidate in found):
        return False
    beyond = found[-1].approximate
    return beyond == 0 or least > beyond * (1 + TOLERANCE)


def _close(one: float, other: float) -> bool:
    return one <= other * (1 + TOLERANCE) and other <= one * (1 + TOLERANCE)
