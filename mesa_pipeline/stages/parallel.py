"""Units of work over worker processes, with one failure never stopping the rest.

Workers are spawned afresh, hold no lock of ours, and are told by the kernel to end when their parent dies, so that ``kill -9``
leaves nothing behind.
"""

import ctypes
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from typing import Generic, TypeVar

from mesa_pipeline.errors import MesaError, MissingDependency, WorkerDied
from mesa_pipeline.llm.concurrency import pool_of_threads

U = TypeVar("U")
R = TypeVar("R")
PR_SET_PDEATHSIG = 1
UNITS_IN_FLIGHT_PER_WORKER = 2


@dataclass(frozen=True)
class UnitResult(Generic[U, R]):
    """What became of one unit: a value and the seconds it took, or an error in one line."""

    unit: U
    value: R | None
    seconds: float
    error: str | None = None


def worker_count(setting: int) -> int:
    """Number of workers: the setting, or one for each core this process may use."""
    if setting:
        return setting
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_units(work: Callable[[U], R], units: Iterable[U], workers: int, threads: bool = False) -> Iterator[UnitResult[U, R]]:
    """Apply ``work`` to every unit; results come as they finish.

    Args:
        work: A module-level function, or a ``partial`` of one; what it raises becomes the unit's error.
        units: What to work on; small and picklable, taken as needed.
        workers: Number of processes; with 1 the calling process does the work itself.
        threads: Use that many threads of this process instead: for work that waits for endpoints, whose turns it shares.

    Raises:
        MissingDependency: Something that every unit needs is not there.
        WorkerDied: A worker process was killed (for instance for want of memory).
    """
    if workers <= 1:
        yield from (_attempt(work, unit) for unit in units)
        return
    if threads:
        with pool_of_threads(workers, "units") as pool:
            yield from _windowed(pool, work, units, workers)
        return
    try:
        yield from _windowed(_pool(workers), work, units, workers * UNITS_IN_FLIGHT_PER_WORKER)
    except BrokenProcessPool as error:
        _pool.cache_clear()
        raise WorkerDied(
            "a worker process died, most likely for want of memory; what it finished is stored: "
            "run the same command again, with `--set run.workers=1` if it happens again"
        ) from error


@cache
def _pool(workers: int) -> ProcessPoolExecutor:
    """The workers of this process, kept from stage to stage: what they import and load is paid for once."""
    return ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (os.getpid(),))


def _windowed(pool: Executor, work: Callable[[U], R], units: Iterable[U], window: int) -> Iterator[UnitResult[U, R]]:
    waiting = deque[Future[UnitResult[U, R]]]()
    remaining = iter(units)
    exhausted = False
    try:
        while waiting or not exhausted:
            while not exhausted and len(waiting) < window:
                try:
                    waiting.append(pool.submit(_attempt, work, next(remaining)))
                except StopIteration:
                    exhausted = True
            done = wait(waiting, return_when=FIRST_COMPLETED).done if waiting else set()
            finished = [future for future in waiting if future in done]
            waiting = deque(future for future in waiting if future not in done)
            yield from (future.result() for future in finished)
    finally:
        for future in waiting:
            future.cancel()


def _attempt(work: Callable[[U], R], unit: U) -> UnitResult[U, R]:
    started = time.perf_counter()
    try:
        value = work(unit)
    except MissingDependency:
        raise  # no other unit would fare better
    except MesaError as error:
        return UnitResult(unit, None, time.perf_counter() - started, str(error))
    except Exception as error:  # one unit's bug must not lose the others' work; the whole trace is kept in the message
        place = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} (at {os.path.basename(place.filename)}:{place.lineno})"  # noqa: PTH119
        return UnitResult(unit, None, time.perf_counter() - started, message)
    return UnitResult(unit, value, time.perf_counter() - started)


def _start_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
