"""The services for real: Dagster and MLflow on PostgreSQL, what they listen on, what survives which kill, and what nobody sees.

One test after the other works on the same services, which are started once for all of them, and a second time after a crash.
"""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from mesa_pipeline.artifacts import Layout, RunningServices
from mesa_pipeline.artifacts.services import ORCHESTRATION, STORES, TRACKING, services_file
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.errors import WorkFailed
from mesa_pipeline.services import control
from mesa_pipeline.services.groups import Identity, family
from mesa_pipeline.services.plan import CODE, DAEMON, MLFLOW, POSTGRES, WEBSERVER
from mesa_pipeline.services.postgres import EmbeddedPostgres, unavailable
from mesa_pipeline.services.probes import HOST, free_port
from mesa_pipeline.services.record import OwnerStatus, State, services_layout
from mesa_pipeline.services.request import ServicesRequest
from mesa_pipeline.subsets import STRUCTURE_NAMES
from tests.elasticsearch_emulator import Proxy
from tests.llm.misbehaving_server import MisbehavingServer, echo_authorization, echo_authorization_in_reply
from tests.services.dagster_client import DagsterClient, until
from tests.services.seen import Cell, cells, columns_with, command_line, connections, everyone, files_with

pytestmark = [
    pytest.mark.skipif(unavailable() is not None, reason=str(unavailable())),
    pytest.mark.system,
    pytest.mark.timeout(900),
]
REPOSITORY = Path(__file__).resolve().parents[2]
PASSWORD, SEARCH_KEY, MODEL_KEY = "dummy-0x5ec4e7", "dummy-0xe1a571c", "dummy-0x0de1"
"""Of the team's PostgreSQL, its Elasticsearch, and its language model."""
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


def test_a_database_that_refuses_us_is_named_before_anything_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MESA_POSTGRES_URL", f"postgresql://mesa:{PASSWORD}@127.0.0.1:9/ours")
    with pytest.raises(WorkFailed, match=r"database 'ours' cannot be used \(.*refused") as caught:
        control.start(ServicesRequest(tmp_path, small_settings("services.postgres=url"), bound=True), ignore)
    assert PASSWORD not in str(caught.value)
    assert OwnerStatus.read(tmp_path).services == ()
    assert files_with(PASSWORD, tmp_path) == []


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address, with a password, of a team's PostgreSQL."""
    with EmbeddedPostgres(tmp_path_factory.mktemp("team") / "postgres") as server:
        server.ensure_database("ours")
        yield server.url("ours").replace("://mesa@", f"://mesa:{PASSWORD}@")


@pytest.fixture(scope="module")
def elasticsearch(elasticsearch_emulator: str) -> Iterator[Proxy]:
    """A team's Elasticsearch."""
    with Proxy(elasticsearch_emulator) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def model() -> Iterator[MisbehavingServer]:
    """A team's language model, which repeats the key that it is sent: at first it refuses it."""
    with MisbehavingServer(script=[echo_authorization(401)], otherwise=echo_authorization_in_reply) as server:
        yield server


@pytest.fixture(scope="module")
def moved(workspace: Path, team: str, elasticsearch: Proxy, model: MisbehavingServer) -> Iterator[OwnerStatus]:
    """The same workspace, after the crash, on a team's servers: by settings and some variables alone."""
    settings = small_settings(
        "services.postgres=url",
        "stores.vectors=pgvector",
        "stores.texts=elasticsearch",
        f"stores.elasticsearch.url={elasticsearch.url}",
        f"llm.chat.base_url={model.base_url}",
        "reading.reader=llm",
        "splits.ratio=[1, 1, 1]",
        "search.iterations=1",
    )
    secrets = {"MESA_POSTGRES_URL": team, "ELASTICSEARCH_API_KEY": SEARCH_KEY, "MESA_API_KEY": MODEL_KEY}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in secrets.items():
            patch.setenv(name, value)
        yield control.start(ServicesRequest(workspace, settings, bound=True), ignore)


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


@pytest.fixture(scope="module")
def tables(moved: OwnerStatus, workspace: Path, elasticsearch: Proxy, model: MisbehavingServer) -> dict[str, list[Cell]]:
    """What stands in each database after work for which every secret was sent, and refused once."""
    client = dagster(moved)
    memories = [f"{name}_memory" for name in STRUCTURE_NAMES.values()]
    refused = client.materialize("subset_sweep_scores", "synthetic", *memories, "structure_evidence")
    assert client.finished(refused, 400) == "FAILURE"
    assert client.finished(client.materialize("subset_sweep_scores", "synthetic"), 400) == "SUCCESS"
    assert client.finished(client.materialize("optimized_policy", "synthetic|0", "split_partitions"), 400) == "SUCCESS"
    assert {asked.headers["authorization"] for asked in elasticsearch.asked} == {f"ApiKey {SEARCH_KEY}"}
    assert {asked.headers["authorization"] for asked in model.requests} == {f"Bearer {MODEL_KEY}"}
    return {use: list(cells(address)) for use, address in RunningServices.of(workspace).databases.items()}


def test_no_secret_is_in_any_table(tables: dict[str, list[Cell]]):
    known = {
        "not with Bearer [key]": (ORCHESTRATION, "event_logs.event"),
        "optimized_policy": (ORCHESTRATION, "snapshots.snapshot_body"),
        "all-MiniLM-L6-v2": (TRACKING, "params.value"),
        "policy-synthetic": (TRACKING, "model_versions.name"),
        "synthetic": (STORES, "places.dataset"),
    }
    for text, (use, column) in known.items():
        assert column in columns_with(text, tables[use]), "it is looked for where it can be, and in what is compressed"
    for secret in (PASSWORD, SEARCH_KEY, MODEL_KEY):
        assert not {use: found for use, within in tables.items() if (found := columns_with(secret, within))}


def test_no_secret_is_in_a_file_but_one_a_command_line_or_a_page(
    moved: OwnerStatus, workspace: Path, tables: dict[str, list[Cell]]
):
    shown = [dagster(moved).configuration()]
    shown += [json.dumps(command_line(process)) for process in everyone(moved)]
    assert any("postgres_url" in text or "Postgres" in text for text in shown)
    assert not any(secret in text for text in shown for secret in (PASSWORD, SEARCH_KEY, MODEL_KEY))
    artifacts = Layout(workspace, "dagster").tracking_artifacts.relative_to(workspace)
    assert any(path.startswith(f"{artifacts}/") for path in files_with("select", workspace))
    assert files_with(PASSWORD, workspace) == [str(services_file(workspace).relative_to(workspace))]
    assert files_with(SEARCH_KEY, workspace) == files_with(MODEL_KEY, workspace) == []
    assert services_file(workspace).stat().st_mode & 0o077 == 0
    assert services_layout(workspace).root.stat().st_mode & 0o077 == 0


def test_down_stops_all_in_order_and_is_harmless_afterwards(moved: OwnerStatus, workspace: Path):
    all_of_it, said = everyone(moved), []
    assert control.stop(workspace, said.append, 20.0) is True
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in all_of_it)
    assert {service.state for service in said[-1].services} == {State.STOPPED}
    assert not services_file(workspace).exists()
    assert control.stop(workspace, said.append, 20.0) is False
    assert not control.look(workspace).up
