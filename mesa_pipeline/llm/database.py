"""SQLite files that threads and processes share."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mesa_pipeline.errors import ArtifactError

BUSY_SECONDS = 60.0
RETRY_SECONDS = 0.01
PRIMARY_CODE = 0xFF
"""Of an SQLite error code, the bits that say what it is; the others say where."""


class Database:
    """A SQLite file; each thread has its own connection, and writers wait for one another.

    Args:
        path: The file; made with its folder on first use.
        schema: Statements that make its tables where they are not there.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        self._schema = schema
        self._local = threading.local()

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection, in a transaction that is committed at the end.

        Raises:
            ArtifactError: The file cannot be read or written.
        """
        try:
            with self._connection() as connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise ArtifactError(f"cannot use {self._path}: {error}; free space or choose another --workspace") from error

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS)
            _let_readers_and_writers_be(connection)
            connection.execute("pragma synchronous = normal")
            connection.executescript(self._schema)
            self._local.connection = connection
        return connection


def _let_readers_and_writers_be(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log. Where several do so at once to a new file, SQLite fails at once instead of waiting."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & PRIMARY_CODE != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return
