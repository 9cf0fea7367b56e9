import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from mesa_pipeline.errors import DataError, WorkFailed
from mesa_pipeline.stages.parallel import run_units, worker_count


def square(number: int) -> int:
    if number == 3:
        raise DataError("three is not wanted")
    if number == 4:
        raise ZeroDivisionError("a bug")
    return number * number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_one_failure_does_not_stop_the_rest(workers):
    results = {result.unit: result for result in run_units(square, range(6), workers)}
    assert {unit: result.value for unit, result in results.items()} == {0: 0, 1: 1, 2: 4, 3: None, 4: None, 5: 25}
    assert results[3].error == "three is not wanted"
    assert "ZeroDivisionError: a bug" in results[4].error
    assert "test_parallel.py" in results[4].error


def test_a_worker_that_dies_is_reported_with_a_remedy():
    with pytest.raises(WorkFailed, match=r"run\.workers=1"):
        list(run_units(die, [1, 2], 2))


def test_units_are_taken_as_needed():
    taken = []

    def units():
        for number in range(100):
            taken.append(number)
            yield number + 10

    results = run_units(square, units(), 2)
    next(results)
    assert len(taken) <= 8
    results.close()


def test_a_setting_of_zero_means_one_worker_a_core():
    assert worker_count(3) == 3
    assert worker_count(0) >= 1


def test_killing_the_parent_leaves_no_worker(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(
            """
            import time
            from mesa_pipeline.stages.parallel import run_units

            if __name__ == "__main__":
                for _ in run_units(time.sleep, [60, 60], 2):
                    pass
            """
        )
    )
    parent = subprocess.Popen([sys.executable, str(script)])
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            children = psutil.Process(parent.pid).children(recursive=True)
            if len(children) >= 3:
                break
            time.sleep(0.1)
        assert len(children) >= 3
    finally:
        parent.kill()
        parent.wait()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
