"""The tables in PostgreSQL: which memories are there, and their vectors."""

from typing import Any

import psycopg
from psycopg import Connection, sql

from mesa_pipeline.errors import ArtifactError, MissingDependency

VERSION = 1
LOCK = 0x6D657361
"""Held while the tables are made, so that processes that start at once make them once."""
IN_ROW = "ALTER TABLE {} ALTER COLUMN embedding SET STORAGE MAIN"
"""Vectors of more than 500 dimensions would otherwise stand elsewhere, and take twice as long to read."""
DEFINITION = f"""
CREATE TABLE mesa.vector_schema (version integer NOT NULL);
INSERT INTO mesa.vector_schema VALUES ({VERSION});
CREATE TABLE mesa.places (
    namespace text NOT NULL,
    dataset text NOT NULL,
    structure text NOT NULL,
    episode text NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    version text NOT NULL,
    embedder text NOT NULL,
    dimensions integer NOT NULL,
    count integer NOT NULL,
    largest_norm double precision NOT NULL,
    hnsw text,
    PRIMARY KEY (namespace, dataset, structure, episode)
);
CREATE TABLE mesa.vectors (
    place bigint NOT NULL REFERENCES mesa.places (id) ON DELETE CASCADE,
    position integer NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (place, position)
);
{IN_ROW.format("mesa.vectors")};
COMMENT ON COLUMN mesa.places.hnsw IS 'parameters of its own index, over a table of its own: mesa.vectors_<id>';
"""


def prepare(connection: Connection[Any]) -> None:
    """Make extension and tables where they are not there, in the transaction that is open.

    Raises:
        MissingDependency: The server has no pgvector, or this user may not create what is missing.
        ArtifactError: Another version of this program made the tables.
    """
    if connection.execute("SELECT to_regclass('mesa.vector_schema')").fetchone() == (None,):
        try:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            if connection.execute("SELECT to_regnamespace('mesa')").fetchone() == (None,):
                connection.execute("CREATE SCHEMA mesa")
            if connection.execute("SELECT to_regclass('mesa.vector_schema')").fetchone() == (None,):
                connection.execute(DEFINITION)
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
            raise MissingDependency(
                "the PostgreSQL server has no pgvector: install the extension there, or set stores.vectors to files"
            ) from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise MissingDependency(
                "this PostgreSQL user may not create the schema mesa or the extension vector: have the database's owner run "
                "`CREATE EXTENSION vector; CREATE SCHEMA mesa AUTHORIZATION <user>`"
            ) from error
    found = connection.execute("SELECT version FROM mesa.vector_schema").fetchone()
    if found != (VERSION,):
        raise ArtifactError(
            f"the PostgreSQL schema mesa has version {found and found[0]}, this program uses {VERSION}; it holds copies alone: "
            "`DROP SCHEMA mesa CASCADE`, then run `mesa build`"
        )


def own_table(place: int) -> sql.Identifier:
    """The table of a place that has one."""
    return sql.Identifier("mesa", f"vectors_{place}")
