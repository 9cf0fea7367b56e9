"""The processes behind the UI: told where things are, bound to the loopback interface, and gone afterwards."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.defs.ui import DEFAULT_PORT, HOST, UiOptions, dagster_services, mlflow_services, prepare_home

SERVE = """
import sys
from pathlib import Path
from mesa_pipeline.config import load_settings
from mesa_pipeline.defs.ui import UiOptions, serve
serve(UiOptions(Path(sys.argv[1]), load_settings(Path(sys.argv[2]), environment={})), lambda line: print(line, flush=True))
"""


@pytest.fixture
def options(tmp_path: Path, settings: Settings) -> UiOptions:
    return UiOptions(tmp_path, settings, data_paths={"ama_bench": Path("rows.jsonl")})


def test_the_processes_are_told_of_workspace_settings_and_data(tmp_path: Path, options: UiOptions):
    environment = prepare_home(tmp_path / "dagster", options)
    assert environment["DAGSTER_HOME"] == str(tmp_path / "dagster")
    assert environment["MESA_WORKSPACE"] == str(tmp_path)
    assert Path(environment["MESA_DATA_AMA_BENCH"]) == Path("rows.jsonl").absolute()
    assert load_settings(Path(environment["MESA_PARAMS"]), environment={}) == options.settings


def test_nothing_is_reported_to_anyone(tmp_path: Path, options: UiOptions):
    environment = prepare_home(tmp_path / "dagster", options)
    configuration = yaml.safe_load((tmp_path / "dagster" / "dagster.yaml").read_text())
    assert configuration["telemetry"] == {"enabled": False}
    assert configuration["nux"] == {"enabled": False}
    assert environment["DAGSTER_DISABLE_TELEMETRY"] == "1"
    assert environment["MLFLOW_DISABLE_TELEMETRY"] == "true"


def test_every_service_with_an_address_is_on_the_loopback_interface(options: UiOptions):
    services = [*dagster_services(DEFAULT_PORT), *mlflow_services(options)]
    for service in services:
        if service.url:
            assert service.url.startswith(f"http://{HOST}:")
            assert service.command[service.command.index("--host") + 1] == HOST


def test_a_port_in_use_is_passed_over():
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        webserver, _ = dagster_services(port)
    assert webserver.url is not None
    assert not webserver.url.endswith(f":{port}")


@pytest.mark.slow
def test_the_web_server_answers_and_leaves_no_process_behind(tmp_path: Path):
    params = Path(__file__).resolve().parents[2] / "params.yaml"
    command = [sys.executable, "-c", SERVE, str(tmp_path), str(params)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as server:
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        url = next(line.split(": ")[1].strip() for line in lines if line.startswith("Asset graph"))
        with urllib.request.urlopen(f"{url}/server_info", timeout=10) as response:
            assert response.status == 200
        started = descendants(server.pid)
        assert len(started) >= 2
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    deadline = time.monotonic() + 10
    while (left := [pid for pid in started if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if not children.exists():
        pytest.skip("needs Linux's /proc to see which processes were started")
    found = [int(child) for child in children.read_text().split()]
    return found + [deeper for child in found for deeper in descendants(child)]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
