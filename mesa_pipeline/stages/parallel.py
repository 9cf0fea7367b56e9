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
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Generic, TypeVar

from mesa_pipeline.errors import MesaError, WorkFailed

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


def run_units(
    work: Callable[[U], R],
    units: Iterable[U],
    workers: int,
    initializer: Callable[..., None] | None = None,
    arguments: tuple[Any, ...] = (),
) -> Iterator[UnitResult[U, R]]:
    """Apply ``work`` to every unit; results come as they finish.

    Args:
        work: A module-level function; what it raises becomes the unit's error.
        units: What to work on; small and picklable, taken as needed.
        workers: Number of processes; with 1 the calling process does the work itself.
        initializer: Called once in each worker, with ``arguments``, before its first unit.
        arguments: Picklable arguments of the initializer.

    Raises:
        WorkFailed: A worker process died (for instance for want of memory).
    """
    if workers <= 1:
        if initializer is not None:
            initializer(*arguments)
        yield from (_attempt(work, unit) for unit in units)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (os.getpid(), initializer, arguments)) as pool:
        try:
            yield from _windowed(pool, work, units, workers * UNITS_IN_FLIGHT_PER_WORKER)
        except BrokenProcessPool as error:
            raise WorkFailed(
                "a worker process died, most likely for want of memory; what it finished is stored: "
                "run the same command again, with `--set run.workers=1` if it happens again"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _windowed(pool: ProcessPoolExecutor, work: Callable[[U], R], units: Iterable[U], window: int) -> Iterator[UnitResult[U, R]]:
    waiting = deque[Future[UnitResult[U, R]]]()
    remaining = iter(units)
    exhausted = False
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


def _attempt(work: Callable[[U], R], unit: U) -> UnitResult[U, R]:
    started = time.perf_counter()
    try:
        value = work(unit)
    except MesaError as error:
        return UnitResult(unit, None, time.perf_counter() - started, str(error))
    except Exception as error:  # one unit's bug must not lose the others' work; the whole trace is kept in the message
        place = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} (at {os.path.basename(place.filename)}:{place.lineno})"  # noqa: PTH119
        return UnitResult(unit, None, time.perf_counter() - started, message)
    return UnitResult(unit, value, time.perf_counter() - started)


def _start_worker(parent: int, initializer: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    if initializer is not None:
        initializer(*arguments)
