"""A worker process: requests and replies, a death in the middle of one, one that takes too long, one that ends."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from mesa_pipeline.baselines.environments import WORKERS, WorkerEnvironment
from mesa_pipeline.baselines.worker import Worker
from mesa_pipeline.errors import SystemFailure

SCRIPT = f"""
import os, sys, time
sys.path.insert(0, {str(WORKERS)!r})
from serving import serve

def put_away(name):
    return lambda: open(name, "w").close()

def fail(request):
    raise ValueError("no such thing")

serve(
    {{
        "add": lambda request: sum(request["numbers"]),
        "fail": fail,
        "die": lambda request: os._exit(3),
        "sleep": lambda request: time.sleep(600),
        "whoami": lambda request: os.getpid(),
    }},
    at_end=put_away("ended"),
    on_death=put_away("stopped"),
)
"""


@dataclass(frozen=True)
class Interpreter:
    """An environment that is this one."""

    script: Path
    name: str = "fake"
    python: str = sys.executable


def worker(folder: Path, seconds: float = 60.0) -> Worker:
    script = folder / "fake_worker.py"
    script.write_text(SCRIPT, encoding="utf-8")
    return Worker(cast("WorkerEnvironment", Interpreter(script)), folder / "home", seconds)


def test_it_replies_and_tells_what_went_wrong(tmp_path: Path) -> None:
    made = worker(tmp_path)
    assert made.call("add", numbers=[1, 2, 3]) == 6
    with pytest.raises(SystemFailure, match="no such thing"):
        made.call("fail")
    process: Any = psutil.Process(made.call("whoami"))
    made.close()
    assert not process.is_running()
    assert (tmp_path / "home" / "ended").exists()


def test_one_that_dies_is_told_and_started_again(tmp_path: Path) -> None:
    made = worker(tmp_path)
    with pytest.raises(SystemFailure, match="its process died"):
        made.call("die")
    assert made.call("add", numbers=[4]) == 4
    made.close()


def test_one_that_takes_too_long_puts_away_what_would_outlive_it(tmp_path: Path) -> None:
    made = worker(tmp_path, seconds=5.0)
    started = time.monotonic()
    with pytest.raises(SystemFailure, match="longer than the settings allow"):
        made.call("sleep")
    assert time.monotonic() - started < 100
    assert (tmp_path / "home" / "stopped").exists()
    assert made.call("add", numbers=[1]) == 1
    made.close()
