"""SQLite files that threads and processes share."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mesa_pipeline.errors import ArtifactError

BUSY_SECONDS = 60.0


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
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = normal")
            connection.executescript(self._schema)
            self._local.connection = connection
        return connection
