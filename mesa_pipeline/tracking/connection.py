"""How MLflow is reached: one client for a database or server, and one message where there is none."""

import fcntl
import logging
import math
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run
from mlflow.exceptions import MlflowException
from sqlalchemy import NullPool, create_engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from mesa_pipeline.errors import MissingDependency, Unreachable
from mesa_pipeline.postgres_errors import SCHEME, may_pass, told, without_driver

MAX_PARAM_CHARS = 6000
MAX_NAME_CHARS = 250
NOT_IN_NAMES = re.compile(r"[^\w\-. /:]", re.ASCII)
SQLITE_PREFIX = "sqlite:///"
PASSING = frozenset({"INTERNAL_ERROR", "TEMPORARILY_UNAVAILABLE", "REQUEST_LIMIT_EXCEEDED"})
"""Codes by which MLflow reports a server or database that does not answer, or has no time."""
logging.getLogger("mlflow").setLevel(logging.WARNING)  # it announces each table it creates


def open_client(uri: str) -> MlflowClient:
    """A client of a tracking server or database; the tables of a new SQLite file are created.

    Raises:
        MissingDependency: It is a PostgreSQL that does not let us in.
    """
    if without_driver(uri).startswith(SCHEME):
        _require_entry(uri)
    with _alone(uri):
        return MlflowClient(tracking_uri=uri, registry_uri=uri)


@contextmanager
def reachable(uri: str) -> Iterator[None]:
    """Say what to do where the place of record cannot be used.

    Raises:
        Unreachable: It does not answer now.
        MissingDependency: It will not do later either.
    """
    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError) as error:
        raise (Unreachable if _may_pass(error) else MissingDependency)(
            f"MLflow at {_place(uri)} cannot be used ({type(error).__name__}); start it, correct tracking.uri, "
            "or go on without it: --set tracking.enabled=false"
        ) from None  # MLflow's own words may hold a password


def _require_entry(uri: str) -> None:
    """See once whether a PostgreSQL lets us in: MLflow tries for minutes, also with a password that is refused.

    Raises:
        MissingDependency: It does not; one that may in a while is left to MLflow.
    """
    try:
        create_engine(uri, poolclass=NullPool).connect().close()
    except OperationalError as error:
        said = str(error.orig)
        if not may_pass(said):
            raise MissingDependency(
                f"MLflow's database at {_place(uri)} cannot be used ({told(said, uri) or type(error).__name__}); correct "
                "tracking.uri, or have `mesa down` and `mesa up` find where it is now, or go on without it: "
                "--set tracking.enabled=false"
            ) from None


def _place(uri: str) -> str:
    """What of an address is no password."""
    place, _, parameters = uri.partition("?")
    return "its address" if "@" in parameters else place.rpartition("@")[2]


def _may_pass(error: Exception) -> bool:
    if isinstance(error, MlflowException):
        return error.error_code in PASSING
    return isinstance(error, OperationalError | ConnectionError | TimeoutError)


@contextmanager
def _alone(uri: str) -> Iterator[None]:
    """Let one process at a time create the tables of a new SQLite file."""
    if not uri.startswith(SQLITE_PREFIX):
        yield
        return
    path = Path(uri.removeprefix(SQLITE_PREFIX))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _create_with_write_ahead_log(path)
        yield


def _create_with_write_ahead_log(path: Path) -> None:
    """Make an empty database that stays in this mode for whoever opens it; where it cannot, it is a common one."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def known(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """The figures there are."""
    return {name: float(value) for name, value in metrics.items() if value is not None and math.isfinite(value)}


def unlogged(run: Run, metrics: Mapping[str, float | None]) -> dict[str, float]:
    """The figures that a run does not have, or has with other values."""
    return {name: value for name, value in known(metrics).items() if run.data.metrics.get(as_name(name)) != value}


def as_metrics(metrics: Mapping[str, float], step: int = 0) -> list[Metric]:
    """Figures as MLflow takes them."""
    now = int(time.time() * 1000)
    return [Metric(as_name(name), value, now, step) for name, value in metrics.items()]


def as_name(name: str) -> str:
    """A figure's name as MLflow takes it: what it does not is left out."""
    return NOT_IN_NAMES.sub("", name)[:MAX_NAME_CHARS]


def printable(text: str) -> str:
    """A text as any database takes it: NUL bytes and lone surrogates as escapes."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def as_params(params: Mapping[str, Any]) -> list[Param]:
    """Parameters as MLflow takes them, cut to the length that it keeps."""
    return [Param(as_name(name), printable(str(value))[:MAX_PARAM_CHARS]) for name, value in params.items()]
