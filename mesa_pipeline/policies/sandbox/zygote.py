"""The host's end of a zygote: started when first needed, started again when it died, gone when the host is."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.policies.sandbox import worker
from mesa_pipeline.policies.sandbox.worker import READY, REQUEST, STATUS

START_SECONDS = 60.0
END_SECONDS = 10.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""A confined child cannot start threads, so a numerical library must not try."""


@dataclass(frozen=True)
class Limits:
    """What one child may use: whole seconds of CPU time and bytes of address space."""

    cpu_seconds: int
    memory_bytes: int


class Child:
    """One confined child: ``job`` is the connection to it. Leaving the context kills and reaps it if it still runs."""

    def __init__(self, job: socket.socket, lifeline: socket.socket) -> None:
        self.job = job
        self._lifeline = lifeline
        self._code: int | None = None

    def end(self) -> int | None:
        """Kill the child unless it has ended, wait until it is gone, and return its exit code as ``subprocess`` has it.

        ``None`` when there is nobody to tell: the zygote died too, or never had a child.
        """
        if self._lifeline.fileno() < 0:
            return self._code
        with self._lifeline, self.job:
            with contextlib.suppress(OSError):
                self._lifeline.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                self._lifeline.settimeout(END_SECONDS)
                status = self._lifeline.recv(STATUS.size)
                self._code = os.waitstatus_to_exitcode(*STATUS.unpack(status)) if status else None
        return self._code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()


class Zygote:
    """A worker process with one hash seed; ``fork`` may be called from several threads at once.

    Args:
        hash_seed: Its ``PYTHONHASHSEED``.
        interpreter: Python to run it with, by default the host's own.
    """

    def __init__(self, hash_seed: int, interpreter: str = sys.executable) -> None:
        self._hash_seed = hash_seed
        self._interpreter = interpreter
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._owner = os.getpid()

    def fork(self, limits: Limits) -> Child:
        """A fresh child.

        Raises:
            MissingDependency: The worker cannot be started on this system.
        """
        with self._lock:
            try:
                return self._request(limits)
            except OSError:  # it died since: once more, with another
                self._stop()
                return self._request(limits)

    def close(self) -> None:
        """End the process and all its children; a later ``fork`` starts another."""
        with self._lock:
            self._stop()

    def _request(self, limits: Limits) -> Child:
        control = self._started()
        job, job_of_child = socket.socketpair()
        lifeline, lifeline_of_zygote = socket.socketpair()
        request = REQUEST.pack(limits.cpu_seconds, limits.memory_bytes)
        with job_of_child, lifeline_of_zygote:
            try:
                socket.send_fds(control, [request], [job_of_child.fileno(), lifeline_of_zygote.fileno()])
            except OSError:
                job.close()
                lifeline.close()
                raise
        return Child(job, lifeline)

    def _started(self) -> socket.socket:
        """The control socket of a zygote that runs and is this process's own, not that of a process it was forked from."""
        if self._control is not None and self._owner == os.getpid() and self._process and self._process.poll() is None:
            return self._control
        self._stop()
        if not hasattr(os, "fork"):
            raise MissingDependency("policies run in forked processes, which this system does not have; use Linux or macOS")
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = self._spawn(theirs.fileno())
        self._control.settimeout(START_SECONDS)
        try:
            greeting = self._control.recv(1024)
        except OSError as error:
            greeting = str(error).encode()
        if greeting != READY:
            self._stop()
            raise _no_worker(greeting.decode("ascii", "replace") or "it died")
        self._control.settimeout(None)
        return self._control

    def _spawn(self, control: int) -> subprocess.Popen[bytes]:
        environment = {"PYTHONHASHSEED": str(self._hash_seed), "LC_ALL": "C.UTF-8", **dict.fromkeys(_THREAD_VARIABLES, "1")}
        # Not -I: it would ignore the hash seed along with the environment, of which nothing else is passed on.
        command = [self._interpreter, "-P", "-B", worker.__file__, str(control), str(os.getpid())]
        null = subprocess.DEVNULL
        try:
            return subprocess.Popen(
                command,
                stdin=null,
                stdout=null,
                stderr=null,
                env=environment,
                cwd="/",
                pass_fds=(control,),
                start_new_session=True,
            )
        except OSError as error:
            raise _no_worker(str(error)) from error

    def _stop(self) -> None:
        process, control = self._process, self._control
        self._process = self._control = None
        if control is not None:
            control.close()
        if process is None:
            return
        if self._owner != os.getpid():
            process.returncode = 0  # the child of another: not ours to wait for
            self._owner = os.getpid()
            return
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _no_worker(reason: str) -> MissingDependency:
    return MissingDependency(f"the worker that runs policies does not start: {reason}")
