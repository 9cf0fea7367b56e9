import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mesa_pipeline.policies.sandbox import gate

SOURCE = 'META = {"direction": "free", "hypothesis": "h"}\n' + "\n".join(
    f"def f{k}(a):\n    return [a + {k} * (b - 1) for b in range(3)]" for k in range(60)
)
VALID = SOURCE + '\ndef select(state, q):\n    return ["S"]\n'


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns in the middle of building a tree: garbage collection runs often, and Python code with it."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()

    def turn(phase: str, info: dict[str, int]) -> None:
        sum(range(50))

    sys.setswitchinterval(1e-5)
    gc.set_threshold(50, 2, 2)
    gc.callbacks.append(turn)
    yield
    gc.callbacks.remove(turn)
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def deep(frames: int) -> object:
    return gate.check(VALID) if frames == 0 else deep(frames - 1)


@pytest.mark.usefixtures("restless")
def test_sources_may_be_read_in_several_threads_at_once() -> None:
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(threads.map(deep, [0, 30, 60, 90] * 4))
    assert len(set(map(str, verdicts))) == 1
