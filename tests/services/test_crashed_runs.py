"""What is lost when a run, the daemon or the web server is killed, two runs want the same, or the disk is full: nothing."""

import os
import re
import shutil
import signal
import subprocess
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.services.plan import POSTGRES
from mesa_pipeline.services.record import OwnerStatus, State
from mesa_pipeline.stages.context import StageContext
from tests.pipeline import SMALL, copy_of
from tests.services.dagster_client import EVENTS, DagsterClient, until
from tests.services.served import served

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
DATASET = "synthetic"
EPISODES = 10
PROCESS = re.compile(r"Started process for run \(pid: (\d+)\)")
RETRY = "dagster/auto_retry_run_id"
PROBLEMS = """query($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
  ... on ExecutionStepFailureEvent { error { message } failureMetadata { description } } } } } }"""
FIGURES = """query($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
  ... on MaterializationEvent { metadataEntries { label ... on IntMetadataEntry { intValue } } } } } } }"""


@pytest.fixture(scope="module")
def layout(prepared: StageContext, tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A workspace in which only the sweep and what follows is to be done."""
    return copy_of(prepared, tmp_path_factory.mktemp("crashes")).layout


@pytest.fixture(scope="module")
def client(layout: Layout) -> Iterator[DagsterClient]:
    with served(layout.workspace, SMALL, ("--no-mlflow",)) as found:
        yield DagsterClient(found.graph)


def test_a_killed_build_is_continued_by_itself_and_makes_the_same(
    client: DagsterClient, layout: Layout, prepared: StageContext
):
    shutil.rmtree(layout.root / "memories" / "vector")
    shutil.rmtree(layout.workspace / "llm", ignore_errors=True)
    first = client.materialize("vector_memory", DATASET)
    kill_once_made(client, layout, first, "memories/vector", 1)
    assert client.finished(first) == "FAILURE"
    second = until(lambda: client.tags(first).get(RETRY))
    assert client.finished(second) == "SUCCESS"
    assert contents(layout, "memories/vector") == contents(prepared.layout, "memories/vector")


def test_a_sweep_goes_on_while_the_daemon_and_the_web_server_are_killed(
    client: DagsterClient, layout: Layout, finished: StageContext
):
    shutil.rmtree(layout.root / "outcomes", ignore_errors=True)
    run = client.materialize("subset_sweep_scores", DATASET)
    until(lambda: made(layout, "outcomes"))
    for name in ("daemon", "webserver"):
        os.killpg(service(layout, name), signal.SIGKILL)
    assert made(layout, "outcomes") < EPISODES

    until(lambda: made(layout, "outcomes") == EPISODES)
    until(lambda: all_ready(layout))
    assert client.finished(run) == "SUCCESS"
    assert contents(layout, "outcomes") == contents(finished.layout, "outcomes")


def test_a_sweep_killed_again_and_again_is_finished_by_the_next_launch(
    client: DagsterClient, layout: Layout, finished: StageContext
):
    shutil.rmtree(layout.root / "outcomes", ignore_errors=True)
    run = client.materialize("subset_sweep_scores", DATASET)
    for goal in (1, 3):
        until(lambda goal=goal: made(layout, "outcomes") >= goal)
        os.kill(process_of(client, run), signal.SIGKILL)
        assert made(layout, "outcomes") < EPISODES
        assert client.finished(run) == "FAILURE"
        run = (
            until(lambda run=run: client.tags(run).get(RETRY))
            if goal == 1
            else client.materialize("subset_sweep_scores", DATASET)
        )
    assert client.finished(run) == "SUCCESS"
    assert contents(layout, "outcomes") == contents(finished.layout, "outcomes")


def test_a_sweep_whose_postgresql_is_killed_loses_nothing_that_was_swept(
    client: DagsterClient, layout: Layout, finished: StageContext
):
    shutil.rmtree(layout.root / "outcomes", ignore_errors=True)
    run = client.materialize("subset_sweep_scores", DATASET)
    until(lambda: made(layout, "outcomes"))
    killed = service(layout, POSTGRES)
    os.kill(killed, signal.SIGKILL)
    assert made(layout, "outcomes") < EPISODES

    until(lambda: all_ready(layout) and service(layout, POSTGRES) != killed)
    swept = {path: path.stat().st_mtime_ns for path in (layout.root / "outcomes").glob("*.jsonl")}
    assert asked_again(lambda: client.finished(run)) in ("SUCCESS", "FAILURE"), "whether it could write down its own end or not"
    again = asked_again(lambda: client.materialize("subset_sweep_scores", DATASET))
    assert asked_again(lambda: client.finished(again)) == "SUCCESS"
    assert contents(layout, "outcomes") == contents(finished.layout, "outcomes")
    assert swept.items() <= {path: path.stat().st_mtime_ns for path in (layout.root / "outcomes").iterdir()}.items()


def test_two_runs_of_one_partition_make_everything_once(client: DagsterClient, layout: Layout, finished: StageContext):
    shutil.rmtree(layout.root / "outcomes", ignore_errors=True)
    runs = [client.materialize("subset_sweep_scores", DATASET) for _ in range(2)]
    assert {client.finished(run) for run in runs} == {"SUCCESS"}
    assert contents(layout, "outcomes") == contents(finished.layout, "outcomes")
    assert sorted(figure(client, run, "made") for run in runs) == [0, EPISODES * 4 * 31]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_full_disk_is_named_damages_nothing_and_the_same_launch_finishes(
    client: DagsterClient, layout: Layout, finished: StageContext
):
    outcomes = layout.root / "outcomes"
    shutil.rmtree(outcomes, ignore_errors=True)
    outcomes.mkdir()
    with small_disk(outcomes, "64k"):
        full = client.materialize("subset_sweep_scores", DATASET)
        assert client.finished(full) == "FAILURE"
        assert "No space left on device; free space" in problem(client, full)
        subprocess.run(["mount", "-o", "remount,size=64m", outcomes], check=True)
        assert client.finished(client.materialize("subset_sweep_scores", DATASET)) == "SUCCESS"
        assert contents(layout, "outcomes") == contents(finished.layout, "outcomes")


def made(layout: Layout, kind: str) -> int:
    """Episodes that are finished."""
    return len(list((layout.root / kind).glob("*.jsonl")))


def contents(layout: Layout, kind: str) -> dict[str, bytes]:
    """Every file of a kind, also those that should not be there."""
    return {path.name: path.read_bytes() for path in (layout.root / kind).iterdir()}


def messages(client: DagsterClient, run: str) -> list[str]:
    return [event.get("message", "") for event in client.ask(EVENTS, id=run)["logsForRun"]["events"]]


def problem(client: DagsterClient, run: str) -> str:
    """What a person reads on the page of a run that failed."""
    (failure,) = filter(None, client.ask(PROBLEMS, id=run)["logsForRun"]["events"])
    return f"{failure['error']['message']} {(failure['failureMetadata'] or {}).get('description')}"


def process_of(client: DagsterClient, run: str) -> int | None:
    """The process that works on a run, once there is one."""
    started = (found for message in messages(client, run) if (found := PROCESS.search(message)))
    return next((int(found[1]) for found in started), None)


def kill_once_made(client: DagsterClient, layout: Layout, run: str, kind: str, count: int) -> None:
    """Kill a run in the middle of its work: when so many episodes are finished, and before all are."""
    process = until(lambda: process_of(client, run))
    until(lambda: made(layout, kind) >= count)
    os.kill(process, signal.SIGKILL)
    assert count <= made(layout, kind) < EPISODES


def figure(client: DagsterClient, run: str, name: str) -> int:
    """A figure on the asset's page that the run made."""
    for event in client.ask(FIGURES, id=run)["logsForRun"]["events"]:
        for entry in event.get("metadataEntries", []):
            if entry["label"] == name:
                return int(entry["intValue"])
    raise AssertionError(f"run {run} shows no {name}")


def service(layout: Layout, name: str) -> int:
    """The process of a service, which leads its group."""
    status = OwnerStatus.read(layout.workspace)
    assert status is not None
    (process,) = [one.process for one in status.services if one.name == name]
    assert process is not None
    return process.pid


def all_ready(layout: Layout) -> bool:
    status = OwnerStatus.read(layout.workspace)
    return status is not None and all(one.state is State.READY for one in status.services)


def asked_again(ask: Callable[[], str]) -> str:
    """What the web server says, once it has replaced the connections that broke: the first to use one is told so."""

    def said() -> str | None:
        try:
            return ask()
        except urllib.error.HTTPError:
            return None

    return str(until(said))


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of its own at a folder."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)
