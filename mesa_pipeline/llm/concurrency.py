"""Independent requests side by side, with results in the order of the work."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

from mesa_pipeline.errors import ModelError

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def pool_of_threads(count: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Threads that are waited for at the end, except by who interrupts: a request in flight may take many minutes."""
    pool, waits = ThreadPoolExecutor(count, name), True
    try:
        yield pool
    except (KeyboardInterrupt, GeneratorExit):
        waits = False
        raise
    finally:
        pool.shutdown(waits, cancel_futures=True)


def map_concurrently(work: Callable[[T], R], items: Iterable[T], limit: int) -> list[R]:
    """Apply ``work`` to every item, at most ``limit`` at a time.

    One item without a reply does not stop the others: what they get is in the reply cache, and a rerun asks for the rest alone.
    Any other error ends the work as soon as what is in flight has ended.

    Args:
        work: Called from several threads, except with ``limit`` 1 or a single item.
        items: What to work on.
        limit: Most calls at a time, at least 1.

    Returns:
        Results in the order of the items.

    Raises:
        ModelError: Some items got no reply; says how many, and what became of the first of them.
        Exception: Whatever else ``work`` raises.
    """
    pending = list(items)
    if limit == 1 or len(pending) <= 1:
        return [work(item) for item in pending]
    with pool_of_threads(min(limit, len(pending)), "requests") as pool:
        futures = [pool.submit(copy_context().run, work, item) for item in pending]
        for future in as_completed(futures):
            if not isinstance(future.exception(), ModelError):
                future.result()
    return _results(futures)


def _results(futures: list[Future[R]]) -> list[R]:
    failed = [error for future in futures if (error := future.exception())]
    if failed:
        raise ModelError(f"{len(failed)} of {len(futures)} requests got no reply, the first: {failed[0]}") from failed[0]
    return [future.result() for future in futures]
