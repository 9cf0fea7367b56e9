"""The services for real: Dagster and MLflow on PostgreSQL, what they listen on, what survives which kill, and what nobody sees.

One test after the other works on the same services, which are started once for all of them, and a second time after a crash.
"""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from mesa_pipeline.artifacts import Layout, RunningServices
from mesa_pipeline.artifacts.services import ORCHESTRATION, STORES, TRACKING, services_file
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.services import control
from mesa_pipeline.services.groups import Identity, family
from mesa_pipeline.services.plan import CODE, DAEMON, MLFLOW, POSTGRES, WEBSERVER
from mesa_pipeline.services.postgres import EmbeddedPostgres, unavailable
from mesa_pipeline.services.probes import HOST, free_port
from mesa_pipeline.services.record import OwnerStatus, State, services_layout
from mesa_pipeline.services.request import ServicesRequest
from tests.services.dagster_client import DagsterClient, until

pytestmark = [
    pytest.mark.skipif(unavailable() is not None, reason=str(unavailable())),
    pytest.mark.system,
    pytest.mark.timeout(900),
]
REPOSITORY = Path(__file__).resolve().parents[2]
PASSWORD = "dummy-0x5ec4e7"
SMALL = (
    "datasets.synthetic.episodes=3",
    "datasets.synthetic.steps=10",
    "datasets.synthetic.questions=1",
    "splits.seeds=[0]",
    "run.workers=1",
    "services.ready_seconds=400",
    "services.restarts.backoff_seconds=0.1",
)


def ignore(status: OwnerStatus) -> None:
    """Watch nothing."""


def small_settings(*more: str) -> Settings:
    ports = f"services.port={free_port()}", f"services.mlflow_port={free_port()}"
    return load_settings(REPOSITORY / "params.yaml", [*SMALL, *ports, *more], {})


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    workspace = tmp_path_factory.mktemp("services") / "workspace"
    yield workspace
    control.stop(workspace, ignore, 10.0)


@pytest.fixture(scope="module")
def up(workspace: Path) -> OwnerStatus:
    """Everything on the embedded PostgreSQL."""
    return control.start(ServicesRequest(workspace, small_settings(), bound=True), ignore)


def processes(status: OwnerStatus) -> dict[str, Identity]:
    return {service.name: service.process for service in status.services if service.process}


def everyone(status: OwnerStatus) -> list[psutil.Process]:
    """The owner and all below it."""
    owner = psutil.Process(status.owner.pid)
    return [owner, *owner.children(recursive=True)]


def dagster(status: OwnerStatus) -> DagsterClient:
    return DagsterClient(str(next(service.url for service in status.services if service.name == WEBSERVER)))


def current(workspace: Path) -> OwnerStatus:
    """What the owner says once all is ready again."""

    def ready() -> OwnerStatus | None:
        status = control.running(workspace)
        return status if status and status.ready else None

    return until(ready, 400)


def test_all_is_up_and_says_where(up: OwnerStatus, workspace: Path):
    assert {service.name: service.state for service in up.services} == dict.fromkeys(
        (POSTGRES, CODE, WEBSERVER, MLFLOW, DAEMON), State.READY
    )
    running = RunningServices.of(workspace)
    assert running is not None
    assert set(running.databases) == {ORCHESTRATION, TRACKING, STORES}
    assert running.owner == up.owner.pid
    assert services_file(workspace).stat().st_mode & 0o777 == 0o600
    snapshot = control.look(workspace)
    assert snapshot.ready
    assert all(size.size_bytes for size in snapshot.databases)
    assert min(snapshot.memory.values()) > 2**20
    assert snapshot.memory["owner"] < snapshot.memory[CODE], "each process counts once"


def test_nothing_listens_beyond_this_machine(up: OwnerStatus):
    listening = {
        (connection.laddr.ip, connection.laddr.port)
        for process in everyone(up)
        for connection in connections(process)
        if connection.status == psutil.CONN_LISTEN
    }
    assert {ip for ip, _ in listening} <= {HOST, f"::ffff:{HOST}"}, "the latter is how a socket for both families calls it"
    assert len(listening) == 3, "web server, code server and MLflow; PostgreSQL has no port at all"


def test_a_second_start_finds_them(up: OwnerStatus, workspace: Path):
    before = processes(up)
    again = control.start(ServicesRequest(workspace, small_settings()), ignore)
    assert processes(again) == before


def test_a_click_makes_the_asset_and_postgres_holds_the_run(up: OwnerStatus, workspace: Path):
    client = dagster(up)
    first, second = (client.materialize("raw_trajectories", "synthetic") for _ in range(2))
    assert client.finished(first, 400) == client.finished(second, 400) == "SUCCESS"
    assert Layout(workspace, "synthetic").manifest.exists()
    databases = RunningServices.of(workspace).databases
    with psycopg.connect(databases[ORCHESTRATION]) as connection:
        stored = connection.execute("SELECT run_id, status FROM runs ORDER BY id").fetchall()
    assert stored == [(first, "SUCCESS"), (second, "SUCCESS")]
    assert not list((workspace / "dagster").rglob("*.db"))
    began, ended = "RunStartEvent", "RunSuccessEvent"
    earlier, later = sorted((dict(client.events(run)) for run in (first, second)), key=lambda e: e[began])
    assert earlier[ended] <= later[began], "two runs of one partition wait for one another"


def test_every_service_comes_back_from_a_kill(up: OwnerStatus, workspace: Path):
    killed = processes(up)
    for identity in killed.values():
        os.kill(identity.pid, signal.SIGKILL)
    until(lambda: not any(identity.is_alive for identity in killed.values()))
    until(lambda: any(service.restarts for service in OwnerStatus.read(workspace).services))
    status = current(workspace)
    assert not set(processes(status).values()) & set(killed.values())
    assert all("SIGKILL" in service.problem or service.name == POSTGRES for service in status.services)
    client = dagster(status)
    run = until(lambda: launched(client), 200)
    assert client.finished(run, 400) == "SUCCESS"


def launched(client: DagsterClient) -> str | None:
    """The web server takes a moment to see the new code server."""
    try:
        return client.materialize("raw_trajectories", "synthetic")
    except AssertionError:
        return None


def test_a_killed_owner_takes_its_services_along_and_down_finds_the_rest(up: OwnerStatus, workspace: Path):
    status = current(workspace)
    children = everyone(status)[1:]
    os.kill(status.owner.pid, signal.SIGKILL)
    until(lambda: not control.is_up(workspace))
    assert not control.look(workspace).ready
    assert RunningServices.of(workspace) is None
    control.stop(workspace, ignore, 20.0)
    until(lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in children))
    assert all(family(identity) == [] for identity in processes(status).values())
    assert control.stop(workspace, ignore, 20.0) is False


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address, with a password, of a team's PostgreSQL."""
    with EmbeddedPostgres(tmp_path_factory.mktemp("team") / "postgres") as server:
        server.ensure_database("ours")
        yield server.url("ours").replace("://mesa@", f"://mesa:{PASSWORD}@")


@pytest.fixture(scope="module")
def moved(workspace: Path, team: str) -> Iterator[OwnerStatus]:
    """The same workspace, after the crash, on a team's PostgreSQL: by settings and one variable alone."""
    request = ServicesRequest(workspace, small_settings("services.postgres=url"), bound=True)
    os.environ["MESA_POSTGRES_URL"] = team
    try:
        yield control.start(request, ignore)
    finally:
        del os.environ["MESA_POSTGRES_URL"]


def test_a_team_s_server_is_used_by_settings_alone(moved: OwnerStatus, workspace: Path):
    assert moved.ready
    assert POSTGRES not in processes(moved)
    client = dagster(moved)
    run = client.materialize("raw_trajectories", "synthetic")
    assert client.finished(run, 400) == "SUCCESS"
    databases = RunningServices.of(workspace).databases
    with psycopg.connect(databases[ORCHESTRATION]) as connection:
        assert connection.execute("SELECT run_id FROM runs").fetchall() == [(run,)]
    with psycopg.connect(databases[TRACKING]) as connection:
        assert connection.execute("SELECT count(*) FROM experiments").fetchone() is not None


def test_its_password_is_in_no_file_but_one_no_command_line_and_no_page(moved: OwnerStatus, workspace: Path):
    shown = [dagster(moved).configuration()]
    shown += [json.dumps(command_line(process)) for process in everyone(moved)]
    assert any("postgres_url" in text or "Postgres" in text for text in shown)
    assert not any(PASSWORD in text for text in shown)
    holding = [
        path.relative_to(workspace)
        for path in workspace.rglob("*")
        if path.is_file() and PASSWORD.encode() in path.read_bytes()
    ]
    assert holding == [services_file(workspace).relative_to(workspace)]
    assert services_file(workspace).stat().st_mode & 0o077 == 0
    assert services_layout(workspace).root.stat().st_mode & 0o077 == 0


def command_line(process: psutil.Process) -> list[str]:
    """Of a process that may have ended since it was listed."""
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def connections(process: psutil.Process) -> list[Any]:
    """Of a process that may have ended since it was listed."""
    with suppress(psutil.NoSuchProcess):
        return process.net_connections("inet")
    return []


def test_down_stops_all_in_order_and_is_harmless_afterwards(moved: OwnerStatus, workspace: Path):
    all_of_it, said = everyone(moved), []
    assert control.stop(workspace, said.append, 20.0) is True
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in all_of_it)
    assert {service.state for service in said[-1].services} == {State.STOPPED}
    assert not services_file(workspace).exists()
    assert control.stop(workspace, said.append, 20.0) is False
    assert not control.look(workspace).up
