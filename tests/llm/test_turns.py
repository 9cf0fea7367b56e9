import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mesa_pipeline.llm.turns import Turns


def test_equal_keys_take_turns():
    turns, inside, most = Turns(), [0], [0]

    def work(_: int) -> None:
        with turns.of("a"):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            threading.Event().wait(0.005)
            inside[0] -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    assert most == [1]


def test_other_keys_do_not_wait():
    turns, together = Turns(), threading.Barrier(2)

    def work(key: str) -> int:
        with turns.of(key):
            return together.wait(timeout=30)

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(work, "ab")) == [0, 1]


def test_a_turn_that_fails_is_over():
    turns = Turns()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"), turns.of("a"):
            raise ValueError("no")
