"""Putting vectors into PostgreSQL, and opening them."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np
from pgvector import Vector
from psycopg import Connection, sql
from psycopg.rows import class_row

from mesa_pipeline.config import PgvectorSettings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stores import Place
from mesa_pipeline.stores.pgvector.connections import Connections
from mesa_pipeline.stores.pgvector.index import LARGEST_NORM, PgvectorIndex, StoredVectors
from mesa_pipeline.stores.pgvector.schema import IN_ROW, own_table

WHERE = "namespace = %s AND dataset = %s AND structure = %s AND episode = %s"
FIND = f"SELECT id, version, embedder, dimensions, count, largest_norm, hnsw FROM mesa.places WHERE {WHERE}"
ABOUT = """
SELECT current_setting('server_version'), (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
    (SELECT count(*) FROM mesa.places WHERE namespace = %s)
"""
SERIALIZE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
INSERT = """
INSERT INTO mesa.places (namespace, dataset, structure, episode, version, embedder, dimensions, count, largest_norm, hnsw)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id
"""
CREATE = "CREATE TABLE {} (position integer PRIMARY KEY, embedding vector({}) NOT NULL)"
INDEX = "CREATE INDEX ON {} USING hnsw (embedding vector_ip_ops) WITH (m = {}, ef_construction = {})"
OTHERS = """
SELECT id, hnsw FROM mesa.places
WHERE namespace = %s AND dataset = %s AND structure = %s AND episode <> ALL(%s) ORDER BY id FOR UPDATE
"""


class PgvectorStore:
    """Vectors in one PostgreSQL, see ``VectorStore``.

    Places with few vectors share a table and are searched exactly, with the results of the process. A place with more has a
    table of its own, with an HNSW index, which may miss some.

    Args:
        settings: Up to how many vectors a place is searched exactly, and the parameters of the index above.
        namespace: Of the workspace, on servers that several share.
        url: Gives the server's address; asked when a connection is opened.
    """

    def __init__(self, settings: PgvectorSettings, namespace: str, url: Callable[[], str]) -> None:
        remedy = (
            f"start one with `mesa up`, set {settings.url_variable} to the address of yours, or set stores.vectors to files"
        )
        self._settings = settings
        self._namespace = namespace
        self._connections = Connections(url, remedy)

    @property
    def name(self) -> str:
        return "pgvector"

    def describe(self) -> str:
        """Versions of PostgreSQL and pgvector, and how many memories of this namespace are there.

        Raises:
            MissingDependency: The server cannot be reached, or lacks what is needed.
        """
        return self._connections.run(self._description)

    def holds(self, place: Place) -> bool:
        """Whether that version is there, whole, with the index that the settings ask for."""
        return self._is_current(self._connections.run(partial(self._find, place)), place)

    def put(self, place: Place, vectors: np.ndarray, embedder: str) -> None:
        """Store vectors, see ``VectorStore``.

        Raises:
            ArtifactError: They are not finite or too long to be embeddings, or another embedder's are there under that version.
            MissingDependency: The server cannot be reached.
        """
        vectors = np.asarray(vectors, dtype=np.float32)
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
        if not (norms <= LARGEST_NORM).all():
            raise ArtifactError(f"a vector of episode {place.episode!r} is not finite, or too long to be an embedding")
        self._connections.run(partial(self._put, place, vectors, embedder, float(norms.max(initial=0.0))))

    def open(self, place: Place, embedder: str) -> PgvectorIndex:
        """The index of a place, see ``VectorStore``."""
        found = self._connections.run(partial(self._find, place))
        if found is None or not self._is_current(found, place):
            raise ArtifactError(
                f"PostgreSQL lacks the {place.structure} vectors of episode {place.episode!r}, or has them of another memory; "
                "run `mesa build`"
            )
        _check_embedder(found, embedder)
        return PgvectorIndex(self._connections, found, self._settings.hnsw.ef_search if self._hnsw(found.count) else None)

    def keep_only(self, dataset: str, structure: str, episodes: Collection[str]) -> None:
        """Delete what is there of any other episode of the structure."""
        self._connections.run(partial(self._keep_only, dataset, structure, sorted(episodes)))

    def approximation(self, vectors: int) -> str | None:
        """The parameters of the search where an index is used, else ``None``."""
        index = self._hnsw(vectors)
        return f"{index} ef_search={self._settings.hnsw.ef_search}" if index else None

    def _description(self, connection: Connection[Any]) -> str:
        row = connection.execute(ABOUT, [self._namespace]).fetchone()
        assert row is not None
        return f"{row[0]} with pgvector {row[1]}; holds {row[2]:,} memories of namespace {self._namespace!r}"

    def _hnsw(self, vectors: int) -> str | None:
        hnsw = self._settings.hnsw
        return f"hnsw m={hnsw.m} ef_construction={hnsw.ef_construction}" if vectors > self._settings.exact_up_to else None

    def _is_current(self, found: StoredVectors | None, place: Place) -> bool:
        if found is None or found.version != place.version:
            return False
        return self._hnsw(found.count) in (None, found.hnsw)

    def _key(self, place: Place) -> tuple[str, str, str, str]:
        return self._namespace, place.dataset, place.structure, place.episode

    def _find(self, place: Place, connection: Connection[Any]) -> StoredVectors | None:
        with connection.cursor(row_factory=class_row(StoredVectors)) as cursor:
            return cursor.execute(FIND, self._key(place)).fetchone()

    def _put(self, place: Place, vectors: np.ndarray, embedder: str, largest_norm: float, connection: Connection[Any]) -> None:
        connection.execute(SERIALIZE, ["\n".join(self._key(place))])
        found = self._find(place, connection)
        if found is not None and self._is_current(found, place):
            _check_embedder(found, embedder)
            return
        if found is not None:
            _delete(connection, [found.id], [found.id] if found.hnsw else [])
        index = self._hnsw(len(vectors))
        row = (*self._key(place), place.version, embedder, vectors.shape[1], len(vectors), largest_norm, index)
        created = connection.execute(INSERT, row).fetchone()
        assert created is not None
        if index:
            self._fill_own_table(connection, own_table(created[0]), vectors)
        else:
            with connection.cursor().copy("COPY mesa.vectors (place, position, embedding) FROM STDIN BINARY") as copy:
                copy.set_types(("int8", "int4", "vector"))
                for position, vector in enumerate(vectors):
                    copy.write_row((created[0], position, Vector(vector)))

    def _fill_own_table(self, connection: Connection[Any], table: sql.Identifier, vectors: np.ndarray) -> None:
        hnsw = self._settings.hnsw
        connection.execute(sql.SQL(CREATE).format(table, vectors.shape[1]))
        connection.execute(sql.SQL(IN_ROW).format(table))
        with connection.cursor().copy(sql.SQL("COPY {} (position, embedding) FROM STDIN BINARY").format(table)) as copy:
            copy.set_types(("int4", "vector"))
            for position, vector in enumerate(vectors):
                copy.write_row((position, Vector(vector)))
        connection.execute(sql.SQL(INDEX).format(table, hnsw.m, hnsw.ef_construction))

    def _keep_only(self, dataset: str, structure: str, episodes: list[str], connection: Connection[Any]) -> None:
        found = connection.execute(OTHERS, (self._namespace, dataset, structure, episodes)).fetchall()
        _delete(connection, [place for place, _ in found], [place for place, index in found if index])


def _delete(connection: Connection[Any], places: list[int], with_own_table: list[int]) -> None:
    for place in with_own_table:
        connection.execute(sql.SQL("DROP TABLE {}").format(own_table(place)))
    connection.execute("DELETE FROM mesa.places WHERE id = ANY(%s)", [places])


def _check_embedder(found: StoredVectors, embedder: str) -> None:
    if found.embedder != embedder:
        raise ArtifactError(
            f"these vectors were built with embedder {found.embedder!r} but llm.embedder is {embedder!r}; "
            "set it back, or build the memories again"
        )
