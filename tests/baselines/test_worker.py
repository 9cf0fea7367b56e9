"""A worker process: requests and replies, a death in the middle of one, one that takes too long, one that ends."""

import signal
import sys
import threading
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

os.dup2(1, 1000)  # where replies go: what is printed goes to the log

serve(
    {{
        "add": lambda request: sum(request["numbers"]),
        "fail": fail,
        "die": lambda request: os._exit(3),
        "sleep": lambda request: time.sleep(600),
        "nap": lambda request: time.sleep(3) or "slept",
        "say": lambda request: os.write(1000, request["text"].encode()),
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


@pytest.mark.parametrize(
    "text",
    ["Traceback (most recent call last):\n", "[1]\n", '{"result"\n', "{}\n", "\xff\n", "[" * 100_000 + "\n"],
    ids=["no JSON", "no object", "cut", "empty", "no ASCII", "deep"],
)
def test_one_that_replies_nonsense_is_told_and_started_again(text: str, tmp_path: Path) -> None:
    made = worker(tmp_path)
    with pytest.raises(SystemFailure, match="fake: "):
        made.call("say", text=text)
    assert made.call("add", numbers=[1]) == 1
    made.close()


def test_a_reply_without_end_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesa_pipeline.baselines.worker.MAX_REPLY", 10_000)
    made = worker(tmp_path)
    with pytest.raises(SystemFailure, match="longer than 10,000 bytes"):
        made.call("say", text="x" * 20_000)
    assert made.call("add", numbers=[1]) == 1
    made.close()


@pytest.mark.slow
def test_one_that_takes_no_request_is_not_waited_for(tmp_path: Path) -> None:
    made = worker(tmp_path, seconds=5.0)
    stopped: Any = psutil.Process(made.call("whoami"))
    stopped.suspend()
    threading.Timer(10.0, stopped.resume).start()  # so that it can be told to end
    with pytest.raises(SystemFailure, match="longer than the settings allow"):
        made.call("add", numbers=list(range(1_000_000)))
    assert made.call("add", numbers=[1]) == 1
    made.close()


def test_the_reply_to_a_call_that_was_interrupted_is_nobodys(tmp_path: Path) -> None:
    made = worker(tmp_path)
    assert made.call("add", numbers=[1]) == 1
    interrupt = threading.Timer(1.0, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    listening = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started the tests may ignore it
    try:
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            made.call("nap")
    finally:
        signal.signal(signal.SIGINT, listening)
    assert made.call("add", numbers=[2]) == 2
    made.close()
