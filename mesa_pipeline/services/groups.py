"""Processes that stay recognisable though process ids are used again, and the groups they lead."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import psutil

CLOCK_TOLERANCE_SECONDS = 1.0
"""Start times are counted in the kernel's ticks from a boot time that is read anew."""
KILLED_SECONDS = 10.0
"""Until the kernel has cleared away what was killed, on a machine that is busy."""
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Identity:
    """A process, told from a later one with the same id by when it began.

    Attributes:
        pid: Its id, and that of its group where it leads one.
        began: Seconds since 1970.
    """

    pid: int
    began: float

    @classmethod
    def of(cls, pid: int) -> Self:
        """The process that has the id now.

        Raises:
            ProcessLookupError: There is none.
        """
        try:
            return cls(pid, psutil.Process(pid).create_time())
        except psutil.NoSuchProcess as error:
            raise ProcessLookupError(f"no process {pid}") from error

    @property
    def is_alive(self) -> bool:
        """Whether it still runs; one that ended and is not yet reaped does not."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.began) <= CLOCK_TOLERANCE_SECONDS
            return bool(same and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False


def family(leader: Identity) -> list[psutil.Process]:
    """The leader, the processes of its group, and all their children, as far as they run.

    A group outlives its leader, and no process can get the id of one that lives, so what is found is what the leader left.
    """
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == leader.pid and process.create_time() >= leader.began - CLOCK_TOLERANCE_SECONDS:
                found[process.pid] = process
                found.update((child.pid, child) for child in process.children(recursive=True))
    return [process for process in found.values() if _runs(process)]


def end_families(leaders: Iterable[Identity], seconds: float) -> int:
    """End leaders and what belongs to them, all at once, and wait until they are gone.

    Args:
        leaders: May have ended.
        seconds: Given to ``SIGTERM`` before what is left is killed.

    Returns:
        How many processes there were.
    """
    processes = [process for leader in leaders for process in family(leader)]
    _signal(processes, signal.SIGTERM)
    left = _wait(processes, seconds)
    left += [child for process in left for child in _children(process) if child not in left]
    _signal(left, signal.SIGKILL)
    _wait(left, KILLED_SECONDS)
    return len(processes)


def memory_bytes(leader: Identity) -> int:
    """Memory of a leader and all that belongs to it; what several processes share is counted once where the system says it."""
    return sum(_memory(process) for process in family(leader))


def own_memory_bytes(identity: Identity) -> int:
    """Memory of one process alone."""
    return _memory(psutil.Process(identity.pid)) if identity.is_alive else 0


def _memory(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        try:
            full = process.memory_full_info()
            return int(getattr(full, "pss", 0) or full.rss)
        except psutil.AccessDenied:
            return int(process.memory_info().rss)
    return 0


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return list(process.children(recursive=True))
    return []


def _wait(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that still run then. One that nobody reaps has ended all the same, so ``psutil.wait_procs`` will not do."""
    deadline = time.monotonic() + seconds
    left = [process for process in processes if _runs(process)]
    while left and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        left = [process for process in left if _runs(process)]
    return left


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False
