"""The process policies run in: a zygote that forks one confined child for each job.

Run by its path in a fresh interpreter with a minimal environment, so that there is nothing of the host in memory to find. The
zygote imports everything once, then does no more than fork: a policy's bytes go from the host straight to the child. A child
serves one job and ends, so nothing of one candidate, nor of fitting, can reach the next.

Beside the files next to it, this file imports the standard library alone.

Protocol. The host sends a request of fixed size and, with it, two sockets: the child's *job* and the zygote's *lifeline*.
On the job, frames of a 4-byte length and that many bytes: a header, the source and two values go in, one reply comes out.
On the lifeline, closing the host's end has the child killed, and its wait status comes back once it has ended.
"""

import gc
import importlib.util
import os
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import NoReturn

REQUEST = struct.Struct("!IQ")
"""Asks for a child: its CPU seconds and bytes of address space."""
STATUS = struct.Struct("!i")
"""How a child ended, as ``waitpid`` says it."""
READY = b"ready"
HOST_CHECK_SECONDS = 1.0
WAKE_BYTES = 4096

Work = Callable[[int, int, int], object]
"""What a child does, given its job's descriptor, its CPU seconds and its bytes of memory."""


class Zygote:
    """Forks children on request, reports how each ended, and ends with the host."""

    def __init__(self, control: socket.socket, host: int, work: Work) -> None:
        self._control = control
        self._host = host
        self._work = work
        self._lifelines: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Take requests until the host is gone: its socket closes, or this process is handed to another parent."""
        woken, waker = socket.socketpair()
        for end in (woken, waker):
            end.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(woken, selectors.EVENT_READ, lambda: self._reap(woken))
        self._selector.register(self._control, selectors.EVENT_READ, self._accept)
        try:
            while os.getppid() == self._host:
                for key, _ in self._selector.select(HOST_CHECK_SECONDS):
                    key.data()
        except EOFError:
            pass
        finally:
            for child in self._lifelines:
                _kill(child)

    def _accept(self) -> None:
        request, descriptors, _, _ = socket.recv_fds(self._control, REQUEST.size, 2)
        if len(request) < REQUEST.size:
            raise EOFError
        job, lifeline = descriptors
        try:
            child = os.fork()
        except OSError:
            os.close(lifeline)  # the host reads from this that there is no child
        else:
            if child == 0:
                self._become_child(job, request)
            self._watch(child, socket.socket(fileno=lifeline))
        os.close(job)

    def _become_child(self, job: int, request: bytes) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._work(job, *REQUEST.unpack(request))
            os._exit(0)
        finally:
            os._exit(1)

    def _watch(self, child: int, lifeline: socket.socket) -> None:
        def cut() -> None:
            if self._lifelines.get(child) is lifeline:  # not reaped by an event of the same round
                self._selector.unregister(lifeline)
                _kill(child)

        self._lifelines[child] = lifeline
        self._selector.register(lifeline, selectors.EVENT_READ, cut)

    def _reap(self, woken: socket.socket) -> None:
        woken.recv(WAKE_BYTES)
        with suppress(ChildProcessError):
            while True:
                child, status = os.waitpid(-1, os.WNOHANG)
                if not child:
                    return
                _kill_group(child)
                lifeline = self._lifelines.pop(child)
                with suppress(KeyError):
                    self._selector.unregister(lifeline)
                with lifeline, suppress(OSError):
                    lifeline.sendall(STATUS.pack(status))


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    _kill_group(child)


def _kill_group(child: int) -> None:
    """End what a child may have started where the kernel could not forbid it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"mesa_policy_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Import what children need, say so, and serve; arguments: the control socket's descriptor and the host's id."""
    control = socket.socket(fileno=int(sys.argv[1]))
    try:
        work = _load_work()
    except Exception as error:
        control.sendall(f"{type(error).__name__}: {error}".encode("ascii", "replace"))
        return
    gc.collect()
    gc.freeze()
    control.sendall(READY)
    Zygote(control, int(sys.argv[2]), work).serve()


def _load_work() -> Work:
    lockdown, facades, job = _load("lockdown"), _load("facades"), _load("job")
    policy_names, search_names = facades.policy_globals(facades.load_ml()), facades.search_globals()
    names = {"fit": policy_names, "select": policy_names, "search": search_names}
    zygote = os.getpid()

    def work(connection: int, cpu_seconds: int, memory_bytes: int) -> None:
        layers = lockdown.confine(connection, cpu_seconds, memory_bytes, zygote)
        job.serve(lockdown.JOB_FD, names, layers, lambda: lockdown.attempts(zygote))

    return work


if __name__ == "__main__":
    main()
