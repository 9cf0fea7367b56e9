"""Where the databases of Dagster, MLflow and MESA are: on the embedded PostgreSQL, on a team's server, or nowhere."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql

from mesa_pipeline.artifacts.services import ORCHESTRATION, STORES, TRACKING
from mesa_pipeline.config import ServicesSettings, secret
from mesa_pipeline.errors import ConfigError, MissingDependency
from mesa_pipeline.postgres_errors import SCHEME, is_plain, told, without_driver
from mesa_pipeline.services.groups import Identity
from mesa_pipeline.services.postgres import EmbeddedPostgres

EXTENSIONS = {STORES: ("vector",)}
CONNECT_SECONDS = 10


class DatabaseSize(NamedTuple):
    """A database and how large it is; ``None`` where that cannot be found out."""

    name: str
    size_bytes: int | None


class EmbeddedPostgresService:
    """The embedded PostgreSQL as one of the services, with the databases in it.

    Args:
        folder: Of its data and logs.
        settings: How its databases are called.
    """

    name = "postgres"
    after: tuple[str, ...] = ()
    url = None

    def __init__(self, folder: Path, settings: ServicesSettings) -> None:
        self._server = EmbeddedPostgres(folder)
        self._folder = folder
        self._names = database_names(settings)

    @property
    def databases(self) -> dict[str, str]:
        """Address of each database, by what it is for."""
        return {use: self._server.url(name) for use, name in self._names.items()}

    @property
    def log(self) -> Path:
        written = sorted(self._folder.glob("data/log/*.log"), key=lambda path: path.stat().st_mtime)
        return written[-1] if written else self._folder / "start.log"

    def start(self) -> Identity:
        self._server.start()
        for use, name in self._names.items():
            self._server.ensure_database(name, EXTENSIONS.get(use, ()))
        return Identity.of(self._server.pid or 0)

    def ended(self) -> str | None:
        code = self._server.poll()
        return None if code is None else f"exit code {code}"

    def is_ready(self) -> bool:
        return True  # it starts when it accepts connections

    def stop(self, seconds: float) -> None:
        self._server.stop()


def database_names(settings: ServicesSettings) -> dict[str, str]:
    """Name of each database of the embedded server, by what it is for."""
    return {ORCHESTRATION: settings.dagster_database, TRACKING: settings.mlflow_database, STORES: STORES}


def team_databases(settings: ServicesSettings) -> dict[str, str]:
    """Address of each database on a team's server; those that are not there are created.

    The address in the environment is that of MESA's own database; the others lie beside it.

    Raises:
        ConfigError: The environment has no address of a PostgreSQL.
        MissingDependency: The server cannot be reached, or does not let a database or an extension be created.
    """
    own = _team_address(settings)
    addresses = {
        ORCHESTRATION: _beside(own, settings.dagster_database),
        TRACKING: _beside(own, settings.mlflow_database),
        STORES: own,
    }
    for use, address in addresses.items():
        _require(address, own, EXTENSIONS.get(use, ()))
    return addresses


def sizes(databases: Mapping[str, str]) -> list[DatabaseSize]:
    """How large databases are, by what they are for."""
    return [DatabaseSize(use, _size(address)) for use, address in sorted(databases.items())]


def _team_address(settings: ServicesSettings) -> str:
    given = secret(settings.url_variable)
    if given is None:
        raise ConfigError(
            f"services.postgres=url, but {settings.url_variable} is not set; it holds the address of MESA's database, "
            "such as postgresql://user:password@host/mesa"
        )
    address = without_driver(given)  # each client then takes the driver that it has
    if not address.startswith(SCHEME):
        raise ConfigError(f"{settings.url_variable} is no address of a PostgreSQL; it begins with {SCHEME}")
    if not is_plain(address):
        raise ConfigError(
            f"{settings.url_variable} is malformed; special characters in its user and password are written as in %40 for @, "
            "%2F for / and %25 for %"
        )
    return address


def _beside(address: str, name: str) -> str:
    return urlsplit(address)._replace(path=f"/{quote(name, safe='')}").geturl()


def _require(address: str, own: str, extensions: tuple[str, ...]) -> None:
    if address != own:
        with _connected(own) as connection, _complaining_of(address):
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_name(address)]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_name(address))))
    with _connected(address) as connection:
        for extension in extensions:
            connection.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(extension)))


@contextmanager
def _connected(address: str) -> Iterator[psycopg.Connection]:
    with (
        _complaining_of(address),
        psycopg.connect(address, autocommit=True, connect_timeout=CONNECT_SECONDS) as connection,
    ):
        yield connection


@contextmanager
def _complaining_of(address: str) -> Iterator[None]:
    """Say of which database something went wrong, and what the server said, which may quote the address but no password."""
    try:
        yield
    except psycopg.Error as error:
        host = urlsplit(address).hostname or "a local socket"
        said = told(error.diag.message_primary or str(error), address) or type(error).__name__
        raise MissingDependency(
            f"PostgreSQL at {host}: database {_name(address)!r} cannot be used ({said}); see that the server runs, lets this "
            "user in with this password, and has the database, or lets the user create it and the extension vector"
        ) from None


def _name(address: str) -> str:
    return urlsplit(address).path.lstrip("/")


def _size(address: str) -> int | None:
    try:
        with psycopg.connect(address, connect_timeout=CONNECT_SECONDS) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    except psycopg.Error:
        return None
    return int(row[0]) if row else None
