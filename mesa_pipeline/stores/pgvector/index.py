"""Searching the vectors of one place."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import psycopg
from pgvector import Vector
from psycopg import Connection, sql

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stores import Match
from mesa_pipeline.stores.embedded import SCORE_DECIMALS, best_matches, inner_products
from mesa_pipeline.stores.pgvector.connections import Connections
from mesa_pipeline.stores.pgvector.schema import own_table

LARGEST_SEARCH = 1000
"""The most candidates that pgvector's ``hnsw.ef_search`` takes."""
FLOAT32_UNIT = 2.0**-24
LARGEST_NORM = 1e15
"""Of a vector that is stored or searched for: inner products of larger ones may not fit into a float32."""
SCORED = sql.SQL("SELECT position, embedding <#> %(query)b AS distance FROM {table} WHERE {condition}")
NEAREST = sql.SQL("{scored} ORDER BY embedding <#> %(query)b LIMIT %(searched)s")
CANDIDATES = sql.SQL("""
WITH scored AS MATERIALIZED ({scored}),
    kth AS (SELECT distance FROM scored ORDER BY distance OFFSET %(k)s - 1 LIMIT 1)
SELECT position, embedding FROM {table} WHERE {condition} AND position = ANY(ARRAY(
    SELECT position FROM scored WHERE distance <= coalesce((SELECT distance FROM kth), 'Infinity') + %(margin)s
))
""")
SEARCH_WIDTH = "SELECT set_config('hnsw.ef_search', %s, true), set_config('enable_sort', 'off', true)"
"""Without sorting, the planner has no way but through the index, however few the vectors."""


@dataclass(frozen=True)
class StoredVectors:
    """What the server knows of the vectors of one place.

    Attributes:
        id: Of the place; another version gets another one.
        version: Fingerprint of the memory.
        embedder: Name of the model that made them.
        dimensions: Of each.
        count: How many.
        largest_norm: Of any of them, Euclidean.
        hnsw: Parameters of the index over their own table; ``None`` where they stand with others.
    """

    id: int
    version: str
    embedder: str
    dimensions: int
    count: int
    largest_norm: float
    hnsw: str | None


@dataclass(frozen=True)
class PgvectorIndex:
    """The vectors of one place, see ``VectorIndex``.

    The server ranks by inner products that it sums in float32. What it returns is every vector that can be among the best when
    they are summed in float64, which is done here, as in the process: so both find the same.

    Attributes:
        connections: To the server.
        vectors: What is searched.
        ef_search: Candidates that the HNSW index is searched for; ``None`` to search exactly.
    """

    connections: Connections
    vectors: StoredVectors
    ef_search: int | None

    def search(self, queries: np.ndarray, k: int) -> list[list[Match]]:
        """The ``k`` best matches of every query; see ``VectorIndex``.

        Raises:
            ArtifactError: The queries have other dimensions or are not finite, or the vectors were replaced since.
            MissingDependency: The server cannot be reached.
        """
        queries = np.asarray(queries, dtype=np.float32)
        if self.vectors.count == 0 or k <= 0:
            return [[] for _ in queries]
        if len(queries) and queries.shape[1] != self.vectors.dimensions:
            raise ArtifactError(
                f"the query has {queries.shape[1]} dimensions, the stored vectors have {self.vectors.dimensions}; "
                "set the embedder back, or build the memories again"
            )
        if not (np.linalg.norm(queries.astype(np.float64), axis=1) <= LARGEST_NORM).all():
            raise ArtifactError("a query's vector is not finite, or too long to be an embedding")
        return self.connections.run(partial(self._search_all, queries, k))

    def _search_all(self, queries: np.ndarray, k: int, connection: Connection[Any]) -> list[list[Match]]:
        searched = max(self.ef_search, k) if self.ef_search else None
        if searched is None or searched > LARGEST_SEARCH:
            return [self._search_one(query, k, None, connection) for query in queries]
        connection.execute(SEARCH_WIDTH, [str(searched)])
        return [self._search_one(query, k, searched, connection) for query in queries]

    def _search_one(self, query: np.ndarray, k: int, searched: int | None, connection: Connection[Any]) -> list[Match]:
        parameters = {"query": Vector(query), "k": k, "margin": self._margin(query), "searched": searched}
        try:
            found = connection.execute(self._statement(searched), parameters, binary=True).fetchall()
        except psycopg.errors.UndefinedTable:
            found = []
        if not found:
            raise ArtifactError("the vectors were replaced while they were searched; run the command again")
        positions = np.array([position for position, _ in found])
        embeddings = np.stack([embedding.to_numpy() for _, embedding in found])
        return best_matches(positions, inner_products(embeddings, query), k)

    def _statement(self, searched: int | None) -> sql.Composed:
        alone = self.vectors.hnsw is not None
        parts: dict[str, sql.Composable] = {
            "table": own_table(self.vectors.id) if alone else sql.Identifier("mesa", "vectors"),
            "condition": sql.SQL("true") if alone else sql.SQL("place = {}").format(self.vectors.id),
        }
        scored = SCORED.format(**parts)
        return CANDIDATES.format(scored=NEAREST.format(scored=scored) if searched else scored, **parts)

    def _margin(self, query: np.ndarray) -> float:
        """How far behind the k-th best by float32 sums one of the best by rounded float64 sums can be.

        A float32 sum of d products, in any order, is off by at most d u / (1 - d u) times the product of the norms, u being
        2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, Section 3.1). Both the k-th best and the other may be
        off, and rounding brings scores together that are up to one unit of the last decimal apart. A hundredth is added for
        the arithmetic of this function.
        """
        terms = self.vectors.dimensions * FLOAT32_UNIT
        error = terms / (1 - terms) * self.vectors.largest_norm * float(np.linalg.norm(query.astype(np.float64)))
        return 1.01 * (2 * error + 10.0**-SCORE_DECIMALS)
