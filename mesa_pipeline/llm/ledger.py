"""What language models cost: every attempt is written down the moment it ends, whatever came of it.

Usage is recorded before a reply is looked at, so attempts that fail, or whose reply nobody can read, are counted too.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mesa_pipeline.errors import ArtifactError

Phase = Literal["build", "retrieve", "answer", "judge", "select", "propose"]
SCHEMA = """
create table if not exists attempts (
    id integer primary key, at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')), phase text not null, model text not null,
    request text not null, outcome text not null, prompt_tokens integer not null, cached_tokens integer not null,
    completion_tokens integer not null, seconds real not null
)
"""
BUSY_SECONDS = 60.0


@dataclass(frozen=True)
class Attempt:
    """One request to a model.

    Attributes:
        phase: What it was for.
        model: Name of the model.
        request: Fingerprint of the request.
        outcome: ``ok``, or in a word what went wrong.
        seconds: Wall time.
        prompt_tokens: As the server counted them; 0 where it did not say.
        cached_tokens: Of those, the ones it took from its prefix cache.
        completion_tokens: As the server counted them.
    """

    phase: Phase
    model: str
    request: str
    outcome: str
    seconds: float
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Spending:
    """Sums over the attempts of one phase with one model."""

    phase: str
    model: str
    attempts: int
    failed: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float


class Ledger:
    """Attempts in a SQLite file; any number of threads and processes may write.

    Args:
        path: The file; made with its folder on first use.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, SCHEMA)

    def record(self, attempt: Attempt) -> None:
        """Write down an attempt.

        Raises:
            ArtifactError: The file cannot be written.
        """
        columns = ("phase", "model", "request", "outcome", "seconds", "prompt_tokens", "cached_tokens", "completion_tokens")
        values = tuple(getattr(attempt, column) for column in columns)
        with self._database.open() as connection:
            connection.execute(f"insert into attempts ({', '.join(columns)}) values ({', '.join('?' * len(columns))})", values)

    def spending(self) -> tuple[Spending, ...]:
        """Sums by phase and model, in that order."""
        query = """
            select phase, model, count(*), sum(outcome != 'ok'), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens),
                sum(seconds)
            from attempts group by phase, model order by phase, model
        """
        with self._database.open() as connection:
            return tuple(Spending(*row) for row in connection.execute(query))


class Database:
    """A SQLite file that threads and processes share: each thread has its own connection.

    Args:
        path: The file.
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
