"""A wrapped package in a process and an environment of its own, spoken to in lines of JSON."""

import atexit
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from mesa_pipeline.baselines.environments import WorkerEnvironment
from mesa_pipeline.errors import SystemFailure
from mesa_pipeline.llm.metering import in_turn

SECONDS_TO_END = 30.0
LAST_WORDS = 2000
"""Characters of a worker's log that an error message holds."""
MAX_REPLY = 256 * 2**20
"""Bytes."""
QUIET = {
    "MEM0_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "OTEL_SDK_DISABLED": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYTHONUNBUFFERED": "1",
}
"""No package may send anything anywhere."""


class Worker:
    """One process, started on first use and again after it died; calls wait for one another.

    Args:
        environment: What it runs in.
        folder: Its home: everything it writes goes there.
        seconds: Longest call.
        variables: Further environment variables.
    """

    def __init__(
        self, environment: WorkerEnvironment, folder: Path, seconds: float, variables: Mapping[str, str] | None = None
    ) -> None:
        self._environment = environment
        self._folder = folder
        self._seconds = seconds
        self._variables = dict(variables or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        atexit.register(self.close)

    def call(self, method: str, **arguments: Any) -> Any:
        """What the worker returns for a method.

        Raises:
            MissingDependency: Its environment was not made yet.
            SystemFailure: It failed, died, replied nonsense, or took too long; holds its last words.
        """
        with in_turn(self._lock):
            process = self._running()
            deadline = time.monotonic() + self._seconds
            try:
                _send(process, {"method": method, **arguments}, deadline)
                reply = _read(_receive(process, deadline))
            except (OSError, ValueError, RecursionError) as error:
                self._stop()
                raise SystemFailure(f"{self._environment.name}: {error or 'its process died'}\n{self._last_words()}") from error
            except BaseException:  # interrupted: the reply still to come would be taken for the next request's
                self._stop()
                raise
        if "error" in reply:
            raise SystemFailure(f"{self._environment.name}: {reply['error']}")
        return reply["result"]

    def close(self) -> None:
        """Let the process put away what it has open, and end it."""
        with self._lock:
            process = self._process
            if process is not None and process.poll() is None and process.stdin is not None:
                process.stdin.close()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(SECONDS_TO_END)
            self._stop()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._folder.mkdir(parents=True, exist_ok=True)
            own = {"HOME": str(self._folder.absolute()), "PATH": os.defpath, "LANG": "C.UTF-8"}
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [self._environment.python, "-E", "-s", self._environment.script],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    env={**own, **QUIET, **self._variables},
                    cwd=self._folder,
                    start_new_session=True,
                )
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        if process.poll() is None:  # in the middle of something: it puts away what would outlive it
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS_TO_END)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    @property
    def _log(self) -> Path:
        return self._folder / "worker.log"

    def _last_words(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-LAST_WORDS:] if self._log.exists() else ""


def _send(process: "subprocess.Popen[bytes]", request: Mapping[str, Any], deadline: float) -> None:
    """Write a line; one that the worker does not take in time is an error."""
    descriptor = _pipe(process.stdin).fileno()
    os.set_blocking(descriptor, False)
    unsent = memoryview(json.dumps(request).encode("ascii") + b"\n")
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_WRITE)
        while unsent:
            _wait(selector, deadline)
            unsent = unsent[os.write(descriptor, unsent) :]


def _receive(process: "subprocess.Popen[bytes]", deadline: float) -> bytes:
    """The next line; what is no line in time is an error."""
    descriptor, received = _pipe(process.stdout).fileno(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not received.endswith(b"\n"):
            _wait(selector, deadline)
            part = os.read(descriptor, 2**20)
            if not part:
                raise BrokenPipeError("its process died")
            received += part
            if len(received) > MAX_REPLY:
                raise ValueError(f"its reply is longer than {MAX_REPLY:,} bytes")
    return bytes(received)


def _wait(selector: selectors.BaseSelector, deadline: float) -> None:
    if not selector.select(max(deadline - time.monotonic(), 0)):
        raise TimeoutError("it took longer than the settings allow")


def _read(line: bytes) -> dict[str, Any]:
    """The reply in a line; raises ``ValueError`` or ``RecursionError`` where there is none."""
    try:
        reply = json.loads(line)
    except ValueError as error:
        raise ValueError(f"its reply is not JSON: {error}") from error
    if not isinstance(reply, dict) or not reply.keys() & {"result", "error"}:
        raise ValueError("its reply holds neither a result nor an error")
    return reply


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise BrokenPipeError("its process has no pipe")
    return pipe
