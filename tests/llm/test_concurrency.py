"""Independent requests side by side: order, failures and the end of work that cannot go on."""

import threading
import time

import pytest

from mesa_pipeline.errors import MissingDependency, ModelError
from mesa_pipeline.llm.concurrency import map_concurrently, pool_of_threads


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_results_stand_in_the_order_of_the_work(limit: int) -> None:
    assert map_concurrently(lambda n: n * n, range(20), limit) == [n * n for n in range(20)]
    assert map_concurrently(lambda n: n, [], limit) == []


def test_as_many_run_at_once_as_the_limit_says_and_no_more() -> None:
    together = threading.Barrier(4)
    running, most = [0], [0]
    lock = threading.Lock()

    def work(number: int) -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait(timeout=20)
        with lock:
            running[0] -= 1
        return number

    assert map_concurrently(work, range(12), 4) == list(range(12))
    assert most[0] == 4


def test_one_item_without_a_reply_does_not_stop_the_others() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if number in {2, 5}:
            raise ModelError(f"HTTP 500 at {number}")
        done.append(number)

    with pytest.raises(ModelError, match="2 of 8 requests got no reply, the first: HTTP 500 at 2"):
        map_concurrently(work, range(8), 3)
    assert sorted(done) == [0, 1, 3, 4, 6, 7]


def test_an_endpoint_that_is_not_there_ends_the_work_early() -> None:
    asked: list[int] = []

    def work(number: int) -> None:
        asked.append(number)
        time.sleep(0.001)
        raise MissingDependency("cannot be reached")

    with pytest.raises(MissingDependency):
        map_concurrently(work, range(10_000), 2)
    assert len(asked) < 5_000


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, GeneratorExit])
def test_who_interrupts_does_not_wait_for_what_is_in_flight(interruption: type[BaseException]) -> None:
    over = threading.Event()
    with pytest.raises(interruption), pool_of_threads(1, "test") as pool:
        hanging, waiting = pool.submit(over.wait, 60), pool.submit(over.wait, 60)
        raise interruption
    assert not hanging.done()
    assert waiting.cancelled()
    over.set()
    assert hanging.result(timeout=20)


def test_any_other_error_waits_for_what_is_in_flight() -> None:
    with pytest.raises(MissingDependency), pool_of_threads(1, "test") as pool:
        hanging = pool.submit(time.sleep, 0.05)
        raise MissingDependency("cannot be reached")
    assert hanging.done()
