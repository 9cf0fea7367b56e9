"""Who lives, who dies and what is left over: always nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest

from mesa_pipeline.config import SandboxSettings
from mesa_pipeline.errors import MissingDependency, SandboxFailure
from mesa_pipeline.policies.sandbox import Reply, Sandbox
from mesa_pipeline.policies.sandbox.zygote import Limits, Zygote
from tests.policies.sandbox.hostile import REACH

REPOSITORY = Path(__file__).resolve().parents[3]
CONSTANT = "def select(state, q):\n    return ['S', 'T']\n"
CHOSEN = [Reply(3)]
ENDLESS = "while True: pass\n"
PATIENCE = 20.0
MYSELF = os.getpid()


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true within a generous time."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def zygotes(earlier: frozenset[int] = frozenset()) -> list[psutil.Process]:
    """The worker processes started by this one that run, but for those that other tests left to their sandboxes."""
    found = psutil.process_iter(["ppid", "cmdline"])  # a dead one has no command line
    ours = [child for child in found if child.info["ppid"] == MYSELF and child.pid not in earlier]
    return [child for child in ours if "worker.py" in " ".join(child.info["cmdline"] or [])]


@pytest.fixture
def earlier() -> frozenset[int]:
    """Worker processes that were there before the test."""
    return frozenset(process.pid for process in zygotes())


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


HOST = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started the tests may ignore these
signal.signal(signal.SIGTERM, signal.SIG_DFL)
from functools import partial
from pathlib import Path
from mesa_pipeline.config import load_settings
from mesa_pipeline.policies.sandbox import Sandbox
settings = load_settings(Path({params!r}), environment={{}}).policies.sandbox.model_copy(update={{"select_seconds": 60.0}})
sandbox = Sandbox(settings)
print(sandbox.tier, flush=True)
"""


def host_script(body: str) -> list[str]:
    """Command of another host that runs ``body`` with a ``sandbox``."""
    return [sys.executable, "-c", HOST.format(params=str(REPOSITORY / "params.yaml")) + textwrap.dedent(body)]


def test_nothing_is_left_over_from_jobs_of_any_ending(limits: SandboxSettings, earlier: frozenset[int]) -> None:
    endings = [
        CONSTANT,
        "x = 1",
        "raise ValueError",
        ENDLESS,
        REACH + "reach('abort')()",
        REACH + "reach('close')(3)\n" + ENDLESS,
    ]
    with Sandbox(limits.model_copy(update={"select_seconds": 0.2})) as sandbox:
        assert sandbox.select(CONSTANT, {}, b"[{}]") == CHOSEN
        (zygote,) = zygotes(earlier)
        before = psutil.Process().num_fds(), zygote.num_fds()
        for source in endings * 3:
            try:
                sandbox.select(source, {}, b"[{}]")
            except SandboxFailure:
                assert source != CONSTANT
            assert zygote.children() == []
        assert psutil.Process().num_fds() == before[0]
        assert eventually(lambda: zygote.num_fds() <= before[1])
    assert gone(zygote)
    assert psutil.Process().num_fds() == before[0] - 1


def test_a_zygote_killed_in_the_middle_takes_its_children_along_and_is_replaced(
    limits: SandboxSettings, earlier: frozenset[int]
) -> None:
    slow = "for k in range(10_000_000): pass\n" + CONSTANT
    with Sandbox(limits.model_copy(update={"select_seconds": 60.0})) as sandbox, ThreadPoolExecutor(1) as thread:
        assert sandbox.tier
        (zygote,) = zygotes(earlier)
        job = thread.submit(sandbox.select, slow, {}, b"[{}]")
        assert eventually(lambda: len(zygote.children()) == 1)
        (child,) = zygote.children()
        zygote.kill()
        assert job.result(PATIENCE) == CHOSEN
        assert eventually(lambda: gone(child))
        assert zygotes(earlier) != [zygote]


def test_a_policy_whose_zygote_dies_each_time_is_given_up(limits: SandboxSettings, earlier: frozenset[int]) -> None:
    with Sandbox(limits.model_copy(update={"select_seconds": 60.0})) as sandbox, ThreadPoolExecutor(1) as thread:
        assert sandbox.tier
        job = thread.submit(sandbox.select, ENDLESS, {}, b"[{}]")
        for _ in range(2):
            assert eventually(lambda: any(zygote.children() for zygote in zygotes(earlier)))
            (zygote,) = zygotes(earlier)
            zygote.kill()
            assert eventually(partial(gone, zygote))
        with pytest.raises(SandboxFailure, match="could not be started, or died with its parent, 2 times"):
            job.result(PATIENCE)
        assert sandbox.select(CONSTANT, {}, b"[{}]") == CHOSEN


def test_a_child_killed_from_outside_is_replaced_unnoticed(limits: SandboxSettings, earlier: frozenset[int]) -> None:
    slow = "for k in range(10_000_000): pass\n" + CONSTANT
    with Sandbox(limits.model_copy(update={"select_seconds": 60.0})) as sandbox, ThreadPoolExecutor(1) as thread:
        assert sandbox.tier
        (zygote,) = zygotes(earlier)
        job = thread.submit(sandbox.select, slow, {}, b"[{}]")
        assert eventually(lambda: len(zygote.children()) == 1)
        zygote.children()[0].kill()
        assert job.result(PATIENCE) == CHOSEN


def test_a_policy_killed_from_outside_each_time_is_given_up(limits: SandboxSettings, earlier: frozenset[int]) -> None:
    with Sandbox(limits.model_copy(update={"select_seconds": 60.0})) as sandbox, ThreadPoolExecutor(1) as thread:
        assert sandbox.tier
        (zygote,) = zygotes(earlier)
        job = thread.submit(sandbox.select, ENDLESS, {}, b"[{}]")
        for _ in range(2):
            assert eventually(lambda: len(zygote.children()) == 1)
            (child,) = zygote.children()
            child.kill()
            assert eventually(partial(gone, child))
        with pytest.raises(SandboxFailure, match="signal 9: killed, perhaps for want of memory"):
            job.result(PATIENCE)


def test_a_host_that_was_stopped_past_the_deadline_does_not_blame_the_policy() -> None:
    body = f"""
        quick = Sandbox(settings.model_copy(update={{"select_seconds": 2.0}}))
        assert quick.tier
        slow = "for k in range(10_000_000): pass\\n" + {CONSTANT!r}
        print("asking", flush=True)
        print(quick.select(slow, {{}}, b"[{{}}]")[0].mask)
    """
    with subprocess.Popen(host_script(body), stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None and host.stdout.readline() and host.stdout.readline() == "asking\n"
        time.sleep(0.1)  # by now it waits for the reply
        host.send_signal(signal.SIGSTOP)
        time.sleep(3.5)
        host.send_signal(signal.SIGCONT)
        assert host.communicate(timeout=PATIENCE)[0] == "3\n"


def test_a_zygote_killed_between_jobs_is_replaced_unnoticed(sandbox: Sandbox) -> None:
    for _ in range(3):
        assert sandbox.select(CONSTANT, {}, b"[{}]") == CHOSEN
        for zygote in zygotes():
            zygote.kill()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_whatever_kills_the_host_nothing_of_it_stays(how: signal.Signals) -> None:
    body = f"""
        threading.Thread(target=sandbox.select, args=({ENDLESS!r}, {{}}, b"[]", 1), daemon=True).start()
        time.sleep(60)
    """
    with subprocess.Popen(host_script(body), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as host:
        assert host.stdout is not None and host.stdout.readline()
        process = psutil.Process(host.pid)
        assert eventually(lambda: len(process.children(recursive=True)) == 3)  # two zygotes, one child
        family = process.children(recursive=True)
        host.send_signal(how)
        host.wait(PATIENCE)
        assert eventually(lambda: all(gone(member) for member in family))


def test_the_end_of_the_interpreter_ends_the_zygotes() -> None:
    with subprocess.Popen(host_script("print(1)"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as host:
        out, err = host.communicate(timeout=120)
    assert (host.returncode, out.split()[1:], err) == (0, [b"1"], b"")
    assert not [p for p in psutil.process_iter(["ppid", "cmdline"]) if str(host.pid) in (p.info["cmdline"] or [])]


def test_a_fork_of_the_host_has_zygotes_of_its_own() -> None:
    body = f"""
        import multiprocessing
        def choose(k):
            return sandbox.select({CONSTANT!r}, {{}}, b"[{{}}]")[0].mask
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(choose, range(4)))
        print(choose(0))
    """
    done = subprocess.run(host_script(body), capture_output=True, timeout=120, check=True)
    assert done.stdout.decode().splitlines()[1:] == ["[3, 3, 3, 3]", "3"]


def test_a_zygote_knows_nothing_of_the_host(confined: Sandbox) -> None:
    assert confined.select(CONSTANT, {}, b"[{}]") == CHOSEN
    environment = zygotes()[0].environ()
    assert set(environment) <= {
        *("PYTHONHASHSEED", "LC_ALL", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    }
    loaded = REACH + "raise ValueError(str([m for m in reach('sys').modules if m.startswith('mesa_')]))"
    with pytest.raises(SandboxFailure) as caught:
        confined.select(loaded, {}, b"[]")
    assert set(json.loads(str(caught.value).split(": ", 2)[2].replace("'", '"'))) <= {
        *("mesa_policy_facades", "mesa_policy_job", "mesa_policy_lockdown", "mesa_policy_ml")
    }


def test_a_worker_that_does_not_start_is_not_the_candidates_fault() -> None:
    false = shutil.which("false")
    assert false
    with pytest.raises(MissingDependency, match="does not start: it died"):
        Zygote(0, false).fork(Limits(1, 2**30))
