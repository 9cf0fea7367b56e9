"""Connections to one PostgreSQL: shared by threads, not by processes, replaced when they drop, and silent about passwords."""

import os
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from pgvector.psycopg import register_vector
from psycopg import Connection

from mesa_pipeline.errors import ArtifactError, MissingDependency, Unreachable
from mesa_pipeline.postgres_errors import may_pass, told, without_driver
from mesa_pipeline.stores.pgvector.schema import prepare

T = TypeVar("T")
CONNECT_SECONDS = 10


class Connections:
    """Connections that are opened when they are needed and kept for the next use.

    Args:
        url: Gives the server's address; asked for each connection.
        remedy: What to do where there is no server, for messages.
    """

    def __init__(self, url: Callable[[], str], remedy: str) -> None:
        self._url = url
        self._remedy = remedy
        self._process = os.getpid()
        self._idle: deque[Connection[Any]] = deque()
        self._others: list[deque[Connection[Any]]] = []

    def run(self, work: Callable[[Connection[Any]], T]) -> T:
        """Do work in one transaction; once more, on a new connection, where the first one turns out to be lost.

        Args:
            work: Given a connection with a transaction open; may be called twice, of which one has no effect.

        Raises:
            MissingDependency: The server cannot be reached.
            ArtifactError: The server refuses; says what it said.
        """
        for connection in (self._kept(), None):
            used = connection or self._open()
            try:
                with used.transaction():
                    result = work(used)
            except psycopg.Error as error:
                lost = used.closed
                used.close()
                if lost and connection is not None:
                    continue
                raise (
                    self._missing(error, passing=True) if lost else ArtifactError(f"PostgreSQL refused: {_said(error)}")
                ) from error
            except BaseException:
                used.close()
                raise
            self._idle.append(used)
            return result
        raise AssertionError("a new connection returns or raises")

    def _kept(self) -> Connection[Any] | None:
        if self._process != os.getpid():
            self._others.append(self._idle)  # a parent's, whose sessions would end if they were closed here
            self._process, self._idle = os.getpid(), deque()
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _open(self) -> Connection[Any]:
        url = without_driver(self._url())
        try:
            connection = psycopg.connect(
                url, autocommit=True, prepare_threshold=None, connect_timeout=CONNECT_SECONDS, application_name="mesa"
            )
        except psycopg.Error as error:
            safe = error if told(str(error), url) else None
            raise self._missing(safe, may_pass(str(error))) from safe
        try:
            with connection.transaction():
                prepare(connection)
            register_vector(connection)
        except BaseException as error:
            lost = connection.closed
            connection.close()
            if isinstance(error, psycopg.Error):
                raise self._missing(error, passing=lost) from error
            raise
        return connection

    def _missing(self, error: psycopg.Error | None, passing: bool) -> MissingDependency:
        kind = Unreachable if passing else MissingDependency
        said = f": {_said(error)}" if error else ", or its address is malformed"
        return kind(f"PostgreSQL cannot be used{said}; {self._remedy}")


def _said(error: psycopg.Error) -> str:
    return " ".join((error.diag.message_primary or str(error)).split())
