"""`mesa ui` for real, on SQLite files: it answers, says where, and leaves nothing behind however it ends."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from mesa_pipeline.services import control
from mesa_pipeline.services.probes import free_port
from tests.services.dagster_client import DagsterClient, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def ui(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """The command, without MLflow, which takes longest to start."""
    settings = ("services.postgres=none", f"services.port={free_port()}", "services.ready_seconds=400")
    options = [option for setting in settings for option in ("--set", setting)]
    place = ("--params", str(REPOSITORY / "params.yaml"), "--workspace", str(tmp_path))
    command = [sys.executable, "-m", "mesa_pipeline.cli", "ui", "--no-mlflow", *place, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        yield process
        process.kill()
    control.stop(tmp_path, lambda status: None, 10.0)


def address(ui: "subprocess.Popen[str]") -> str:
    assert ui.stdout is not None
    found = next(match for line in ui.stdout if (match := re.match(r"Asset graph: (http://127\.0\.0\.1:\d+)", line)))
    return found[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_web_server_answers_and_no_process_is_left(ui, tmp_path: Path, number: signal.Signals):
    if number is signal.SIGKILL and sys.platform != "linux":
        pytest.skip("elsewhere `mesa down` ends what is left")
    url = address(ui)
    with urllib.request.urlopen(f"{url}/server_info", timeout=60) as response:
        assert response.status == 200
    assert "SqliteRunStorage" in DagsterClient(url).configuration()
    started = psutil.Process(ui.pid).children(recursive=True)
    assert len(started) >= 4, "owner, code server, web server and daemon"
    os.kill(ui.pid, number)
    ui.wait(300)
    until(lambda: not control.is_up(tmp_path), 300)
    until(lambda: not [process for process in started if is_running(process)], 120)


def is_running(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
