"""Environments of wrapped packages: made once however many ask for one, and never taken for whole when they are not."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mesa_pipeline.baselines.environments import WORKERS, WorkerEnvironment
from mesa_pipeline.errors import ArtifactError, MissingDependency, WorkFailed
from tests.conftest import REPOSITORY

WAIT_SECONDS = 60
MAKE = """
import sys
from pathlib import Path
from mesa_pipeline.baselines.environments import WorkerEnvironment
sys.executable = sys.argv[2]
WorkerEnvironment("mem0", Path(sys.argv[1])).make(print)
"""
VENV = """#!/bin/sh
mkdir -p "$3/bin" && ln -s /bin/true "$3/bin/python"
"""
INSTALLER = """#!/bin/sh
echo installed >> {folder}/installs
while [ -e {folder}/wait ]; do sleep 0.05; done
[ ! -e {folder}/fail ] || {{ echo "no such package" >&2; exit 1; }}
"""


@pytest.fixture
def edge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with stand-ins for Python's venv and uv; files ``wait`` and ``fail`` in it make the installer do so."""
    for name, script in {"venv": VENV, "uv": INSTALLER.format(folder=tmp_path)}.items():
        (tmp_path / name).write_text(script, encoding="ascii")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.fixture
def environment(edge: Path) -> WorkerEnvironment:
    return WorkerEnvironment("mem0", edge / "environments")


def installs(edge: Path) -> int:
    path = edge / "installs"
    return len(path.read_text(encoding="ascii").splitlines()) if path.exists() else 0


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_is_made_once(edge: Path, environment: WorkerEnvironment) -> None:
    said: list[str] = []
    with pytest.raises(MissingDependency, match="mesa baselines install mem0"):
        _ = environment.python
    environment.make(said.append)
    assert environment.python.exists()
    assert environment.script.parent == WORKERS
    environment.make(said.append)
    assert installs(edge) == 1
    assert said[-1].endswith("is there already")


def test_who_asks_meanwhile_waits_and_finds_it_there(edge: Path, environment: WorkerEnvironment) -> None:
    (edge / "wait").touch()
    first = threading.Thread(target=environment.make, args=(lambda line: None,))
    first.start()
    wait_until(lambda: installs(edge) == 1)
    said = told_who_asks_meanwhile(edge, environment)
    first.join(WAIT_SECONDS)
    assert "waiting for another process" in said[0]
    assert "is there already" in said[1]
    assert installs(edge) == 1
    assert environment.is_made


def test_one_whose_maker_was_killed_is_made_once_its_installer_has_ended(edge: Path, environment: WorkerEnvironment) -> None:
    (edge / "wait").touch()
    real = os.path.realpath("/proc/self/exe")
    maker = subprocess.Popen(
        [real, "-c", MAKE, str(environment.folder), str(edge / "venv")],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])},
        stdout=subprocess.DEVNULL,
    )
    wait_until(lambda: installs(edge) == 1)
    maker.send_signal(signal.SIGKILL)
    maker.wait(WAIT_SECONDS)
    assert not environment.is_made
    assert "waiting for another process" in told_who_asks_meanwhile(edge, environment)[0]
    assert installs(edge) == 2
    assert environment.is_made


def told_who_asks_meanwhile(edge: Path, environment: WorkerEnvironment) -> list[str]:
    """What is said to one who wants the environment while an installer is at work, which is let go then."""
    said: list[str] = []
    asking = threading.Thread(target=environment.make, args=(said.append,))
    asking.start()
    wait_until(lambda: bool(said))
    (edge / "wait").unlink()
    asking.join(WAIT_SECONDS)
    return said


def test_one_whose_packages_cannot_be_had_is_not_there(edge: Path, environment: WorkerEnvironment) -> None:
    (edge / "fail").touch()
    with pytest.raises(WorkFailed, match="no such package"):
        environment.make(lambda line: None)
    with pytest.raises(MissingDependency, match="mesa baselines install mem0"):
        _ = environment.python
    (edge / "fail").unlink()
    environment.make(lambda line: None)
    assert environment.is_made


def test_one_that_lost_its_interpreter_is_made_anew(edge: Path, environment: WorkerEnvironment) -> None:
    environment.make(lambda line: None)
    environment.python.unlink()
    with pytest.raises(MissingDependency, match="mesa baselines install mem0"):
        _ = environment.python
    environment.make(lambda line: None)
    assert environment.python.exists()


def test_a_folder_that_cannot_be_written_is_told(edge: Path) -> None:
    (edge / "file").touch()
    with pytest.raises(ArtifactError, match="choose another --workspace"):
        WorkerEnvironment("mem0", edge / "file" / "environments").make(lambda line: None)
