"""One service: what is started, how to see that it is ready, and the process that it is."""

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mesa_pipeline.services.groups import Identity, end_families
from mesa_pipeline.services.probes import Probe

PR_SET_PDEATHSIG = 1
TAIL_BYTES, TAIL_LINES = 4000, 6
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Service(Protocol):
    """Something that is started, watched, and stopped."""

    @property
    def name(self) -> str:
        """What it is."""
        ...

    @property
    def after(self) -> tuple[str, ...]:
        """Names of the services that it needs."""
        ...

    @property
    def url(self) -> str | None:
        """Its address for people."""
        ...

    @property
    def log(self) -> Path:
        """Where it writes its log."""
        ...

    def start(self) -> Identity:
        """Start it; what is left of an earlier start is stopped before.

        Raises:
            MesaError, OSError: It cannot be started.
        """
        ...

    def ended(self) -> str | None:
        """How it ended by itself; ``None`` as long as it runs."""
        ...

    def is_ready(self) -> bool:
        """Whether it does what it is there for."""
        ...

    def stop(self, seconds: float) -> None:
        """Stop it, with all that it started, and wait until it is gone.

        Args:
            seconds: Given to it before it is killed.
        """
        ...


@dataclass(frozen=True)
class Program:
    """A service that is a program of its own.

    Attributes:
        name: What it is.
        command: How to start it.
        environment: All it is to find there.
        log: Where its output goes.
        ready: Tells when it can be used.
        after: Names of the services that it needs.
        url: Its address for people.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    ready: Probe
    after: tuple[str, ...] = ()
    url: str | None = None


class ProgramService:
    """A program in a process group of its own, which ends when the thread that started it does (where the system is Linux)."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._identity: Identity | None = None
        self.name = program.name
        self.after = program.after
        self.url = program.url
        self.log = program.log

    def start(self) -> Identity:
        if self._identity:
            end_families([self._identity], 0)
        self._process = spawn(self._program.command, self._program.environment, self.log)
        self._identity = Identity.of(self._process.pid)
        return self._identity

    def ended(self) -> str | None:
        code = self._process.poll() if self._process else None
        if code is None:
            return None
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def is_ready(self) -> bool:
        return self._identity is not None and self._program.ready(self._identity.began)

    def stop(self, seconds: float) -> None:
        if self._identity and self._process:
            end_families([self._identity], seconds)
            self._process.wait()


def spawn(command: tuple[str, ...], environment: Mapping[str, str], log: Path, bound: bool = True) -> "subprocess.Popen[bytes]":
    """Start a program in a session of its own, with its output appended to a file that only this user can read.

    Args:
        command: The program and its arguments.
        environment: All it finds there.
        log: The file.
        bound: Whether it is told to end when the thread that starts it does.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            env=dict(environment),
            start_new_session=True,
            preexec_fn=_before_program(os.getpid() if bound else None),  # noqa: PLW1509  # no thread starts services
        )
    finally:
        os.close(descriptor)


def tail(log: Path) -> str:
    """The last lines of a log, without colours; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = COLOUR.sub("", file.read().decode("utf-8", "replace")).splitlines()
    except OSError:
        return ""
    return "\n".join([line for line in lines if line.strip()][-TAIL_LINES:])


def _before_program(parent: int | None) -> Callable[[], None]:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)  # whoever started this system may have ignored them
        if parent is not None and libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

    return prepare
