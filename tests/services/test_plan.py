"""What is started: told where things are, on the loopback interface, and with no address that may hold a password in sight."""

import os
import socket
from pathlib import Path

import pytest
import yaml

from mesa_pipeline.artifacts.services import ORCHESTRATION, STORES, TRACKING
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.services.plan import DAGSTER_URL_VARIABLE, Plan
from mesa_pipeline.services.probes import HOST, free_port
from mesa_pipeline.services.request import ServicesRequest
from mesa_pipeline.services.service import Program

PASSWORD = "dummy-0x5ec4e7"
DATABASES = {use: f"postgresql://mesa:{PASSWORD}@db.example/{use}" for use in (ORCHESTRATION, TRACKING, STORES)}


@pytest.fixture
def request_(tmp_path: Path, settings: Settings) -> ServicesRequest:
    return ServicesRequest(tmp_path, settings, data_paths={"ama_bench": Path("rows.jsonl").absolute()})


def programs(plan: Plan) -> dict[str, Program]:
    return {program.name: program for program in plan.programs()}


def test_the_processes_are_told_of_workspace_settings_and_data(request_: ServicesRequest, tmp_path: Path):
    request_.write()
    environment = programs(Plan(request_, {}))["code-server"].environment
    assert environment["DAGSTER_HOME"] == str(tmp_path / "dagster")
    assert environment["MESA_WORKSPACE"] == str(tmp_path)
    assert Path(environment["MESA_DATA_AMA_BENCH"]) == Path("rows.jsonl").absolute()
    assert load_settings(Path(environment["MESA_PARAMS"]), environment={}) == request_.settings


def test_nothing_is_reported_to_anyone(request_: ServicesRequest, tmp_path: Path):
    for program in programs(Plan(request_, {})).values():
        assert program.environment["DAGSTER_DISABLE_TELEMETRY"] == "1"
        assert program.environment["MLFLOW_DISABLE_TELEMETRY"] == "true"
    configuration = yaml.safe_load((tmp_path / "dagster" / "dagster.yaml").read_text())
    assert configuration["telemetry"] == {"enabled": False}
    assert configuration["nux"] == {"enabled": False}


def test_all_that_listens_does_so_on_the_loopback_interface(request_: ServicesRequest, tmp_path: Path):
    for program in programs(Plan(request_, {})).values():
        if program.name != "daemon":
            assert program.command[program.command.index("--host") + 1] == HOST
        if program.url:
            assert program.url.startswith(f"http://{HOST}:")
    location = yaml.safe_load((tmp_path / "dagster" / "workspace.yaml").read_text())["load_from"][0]["grpc_server"]
    assert location["host"] == HOST


def test_a_port_in_use_is_passed_over():
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        assert free_port(taken.getsockname()[1]) != taken.getsockname()[1]


@pytest.mark.parametrize("databases", [{}, DATABASES])
def test_dagster_keeps_its_runs_where_the_databases_are(request_: ServicesRequest, tmp_path: Path, databases: dict[str, str]):
    environment = programs(Plan(request_, databases))["webserver"].environment
    storage = yaml.safe_load((tmp_path / "dagster" / "dagster.yaml").read_text()).get("storage")
    if databases:
        assert storage == {"postgres": {"postgres_url": {"env": DAGSTER_URL_VARIABLE}}}
        assert environment[DAGSTER_URL_VARIABLE] == databases[ORCHESTRATION]
    else:
        assert storage is None
        assert DAGSTER_URL_VARIABLE not in environment


def test_a_password_goes_by_the_environment_of_those_who_need_it_alone(request_: ServicesRequest, tmp_path: Path):
    plan = Plan(request_, DATABASES)
    request_.write()
    started = programs(plan)
    given = {name: [value for value in program.environment.values() if PASSWORD in value] for name, program in started.items()}
    assert given == {
        "code-server": [DATABASES[ORCHESTRATION]],
        "webserver": [DATABASES[ORCHESTRATION]],
        "daemon": [DATABASES[ORCHESTRATION]],
        "mlflow": [DATABASES[TRACKING]],
    }
    assert not any(PASSWORD in part for program in started.values() for part in program.command)
    assert not any(PASSWORD in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_a_tracking_server_of_the_settings_is_there_already(request_: ServicesRequest, tmp_path: Path):
    settings = request_.settings
    elsewhere = settings.model_copy(update={"tracking": settings.tracking.model_copy(update={"uri": "http://mlflow:5000"})})
    assert "mlflow" not in programs(Plan(ServicesRequest(tmp_path, elsewhere), {}))
    assert "mlflow" not in programs(Plan(ServicesRequest(tmp_path, settings, with_mlflow=False), {}))


def test_a_service_never_comes_before_one_that_it_needs(request_: ServicesRequest):
    names = ["postgres"]
    for program in Plan(request_, DATABASES, ("postgres",)).programs():
        assert set(program.after) <= set(names)
        names.append(program.name)


def test_who_asks_may_have_anything_in_the_environment(request_: ServicesRequest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DAGSTER_HOME", "/somewhere/else")
    assert programs(Plan(request_, {}))["daemon"].environment["DAGSTER_HOME"] != "/somewhere/else"
    assert programs(Plan(request_, {}))["daemon"].environment["PATH"] == os.environ["PATH"]
