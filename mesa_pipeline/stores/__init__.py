"""Where memories are searched: the protocols, and the match they return.

A memory's artifact is a file and remains the truth. In the process, an index is made from that file; a server holds a copy
that is put there after the build, that can be lost and put there again, and that returns the same matches.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from mesa_pipeline.stores.bm25 import Bm25Index


class Match(NamedTuple):
    """A stored item found: its position in the order it was added, and its score (higher is better)."""

    position: int
    score: float


class VectorIndex(Protocol):
    """Finds the stored vectors with the largest inner products."""

    def search(self, queries: np.ndarray, k: int) -> list[list[Match]]:
        """The best matches of every query.

        Args:
            queries: Shape ``(queries, dimensions)``, float32.
            k: Matches wanted; fewer where fewer vectors are stored.

        Returns:
            One list a query, best first; equal scores stand in order of position.
        """
        ...


class TextIndex(Protocol):
    """Ranks the stored texts against a query by the words they share."""

    def search(self, query: str, k: int) -> list[Match]:
        """The best matches, best first; equal scores stand in order of position.

        Args:
            query: Any text.
            k: Matches wanted; fewer where fewer texts are stored. A text that shares nothing with the query has score 0.
        """
        ...


class Place(NamedTuple):
    """Which memory a server's index is of.

    Attributes:
        dataset: Name of the dataset.
        structure: Name of the structure.
        episode: Key of the episode.
        version: Fingerprint of the memory. A place holds one version: another one replaces it.
    """

    dataset: str
    structure: str
    episode: str
    version: str


class Store(Protocol):
    """What every server's store does, whatever it holds. Threads and processes may share it.

    Every method raises ``MissingDependency`` where the server cannot be reached, and says how to start it or go on without;
    no message holds a password.
    """

    @property
    def name(self) -> str:
        """What results are labelled with, such as ``pgvector``."""
        ...

    def holds(self, place: Place) -> bool:
        """Whether that version is there, whole."""
        ...

    def keep_only(self, dataset: str, structure: str, episodes: Collection[str]) -> None:
        """Delete what is there of any other episode of the structure."""
        ...

    def describe(self) -> str:
        """Version of the server, and what else is worth knowing of it, in a line without secrets."""
        ...


class VectorStore(Store, Protocol):
    """Vectors on a server."""

    def put(self, place: Place, vectors: np.ndarray, embedder: str) -> None:
        """Store vectors whole or not at all, in place of any other version; a version that is there is left alone.

        Args:
            place: Where.
            vectors: Shape ``(n, dimensions)``, float32; their positions are 0 to n - 1.
            embedder: Name of the model that made them.
        """
        ...

    def open(self, place: Place, embedder: str) -> VectorIndex:
        """The index of a place.

        Raises:
            ArtifactError: That version is not there, or another embedder made its vectors; names both.
        """
        ...

    def approximation(self, vectors: int) -> str | None:
        """How an index of so many vectors is searched when that may miss some; ``None`` where it is exact."""
        ...


class TextStore(Store, Protocol):
    """Texts on a server, ranked as ``Bm25Index`` ranks them, by the statistics of their own place alone."""

    def put(self, place: Place, index: "Bm25Index") -> None:
        """Store texts whole or not at all, in place of any other version; a version that is there is left alone."""
        ...

    def open(self, place: Place) -> TextIndex:
        """The index of a place.

        Raises:
            ArtifactError: That version is not there.
        """
        ...


@dataclass(frozen=True)
class Stores:
    """The servers that hold copies of memories; ``None`` where a memory is searched in the process."""

    vectors: VectorStore | None = None
    texts: TextStore | None = None
