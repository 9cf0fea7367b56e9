"""What is lost or made twice when a run, PostgreSQL, the daemon or the web server is killed in the middle of a build or a
sweep, when two runs want the same, or the disk is full: nothing.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import load_settings
from mesa_pipeline.services.plan import DAEMON, POSTGRES, WEBSERVER
from mesa_pipeline.services.record import OwnerStatus, State
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from tests.conftest import REPOSITORY
from tests.pipeline import SMALL, copy_of
from tests.services.dagster_client import EVENTS, DagsterClient, until
from tests.services.served import served

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
DATASET = "synthetic"
EPISODES, QUESTIONS = 10, 4
SETTINGS = (*SMALL, "stores.vectors=pgvector", "services.restarts.limit=20")
"""PostgreSQL has a part in the work too, and may be killed by one test after the other."""
PROCESS = re.compile(r"Started process for run \(pid: (\d+)\)")
RETRY = "dagster/auto_retry_run_id"
PROBLEMS = """query($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
  ... on ExecutionStepFailureEvent { error { message } failureMetadata { description } } } } } }"""
FIGURES = """query($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
  ... on MaterializationEvent { metadataEntries { label ... on IntMetadataEntry { intValue } } } } } } }"""


@dataclass(frozen=True)
class Work:
    """What takes long enough to be disturbed.

    Attributes:
        asset: That is made by it.
        kind: Where that lies.
        timing: Where the stage notes each unit that it made.
        units: How many it makes.
    """

    asset: str
    kind: str
    timing: str
    units: int


BUILD = Work("vector_memory", "memories/vector", "build-V", EPISODES)
SWEEP = Work("subset_sweep_scores", "outcomes", "sweep", EPISODES * QUESTIONS)


@pytest.fixture(scope="module")
def layout(prepared: StageContext, tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A workspace in which only the sweep and what follows is to be done."""
    return copy_of(prepared, tmp_path_factory.mktemp("crashes")).layout


@pytest.fixture(scope="module")
def client(layout: Layout) -> Iterator[DagsterClient]:
    with served(layout.workspace, SETTINGS, ("--no-mlflow",)) as found:
        yield DagsterClient(found.graph)


@pytest.fixture(params=[BUILD, SWEEP], ids=["build", "sweep"])
def work(request: pytest.FixtureRequest, client: DagsterClient, layout: Layout) -> Work:
    """Work of which nothing is done."""
    undo(client, layout, request.param)
    return request.param


@pytest.fixture
def sweep(client: DagsterClient, layout: Layout) -> Work:
    """A sweep of which nothing is done."""
    undo(client, layout, SWEEP)
    return SWEEP


def test_work_that_is_killed_is_continued_by_itself_and_again_by_the_next_launch(
    client: DagsterClient, layout: Layout, finished: StageContext, work: Work
):
    run = client.materialize(work.asset, DATASET)
    for goal in (1, 3):
        kill_once_made(client, layout, run, work, goal)
        assert client.finished(run) == "FAILURE"
        run = until(lambda run=run: client.tags(run).get(RETRY)) if goal == 1 else client.materialize(work.asset, DATASET)
    assert client.finished(run) == "SUCCESS"
    assert_as_if_undisturbed(layout, finished, work, kills=2)


def test_work_goes_on_while_the_daemon_and_the_web_server_are_killed(
    client: DagsterClient, layout: Layout, finished: StageContext, work: Work
):
    run = client.materialize(work.asset, DATASET)
    until(lambda: made(layout, work))
    for name in (DAEMON, WEBSERVER):
        os.killpg(service(layout, name), signal.SIGKILL)
    assert made(layout, work) < EPISODES

    until(lambda: made(layout, work) == EPISODES)
    until(lambda: all_ready(layout))
    assert client.finished(run) == "SUCCESS"
    assert_as_if_undisturbed(layout, finished, work)


def test_work_whose_postgresql_is_killed_loses_nothing_that_was_made(
    client: DagsterClient, layout: Layout, finished: StageContext, work: Work
):
    run = client.materialize(work.asset, DATASET)
    until(lambda: made(layout, work))
    killed = service(layout, POSTGRES)
    os.kill(killed, signal.SIGKILL)
    assert made(layout, work) < EPISODES

    until(lambda: all_ready(layout) and service(layout, POSTGRES) != killed)
    assert client.finished(run) in ("SUCCESS", "FAILURE"), "whether it could write down its own end or not"
    assert client.finished(client.materialize(work.asset, DATASET)) == "SUCCESS"
    assert_as_if_undisturbed(layout, finished, work)
    if work is BUILD:
        assert left_to_publish(layout) == 0


def test_two_runs_of_one_partition_make_everything_once(
    client: DagsterClient, layout: Layout, finished: StageContext, sweep: Work
):
    runs = [client.materialize(sweep.asset, DATASET) for _ in range(2)]
    assert {client.finished(run) for run in runs} == {"SUCCESS"}
    assert sorted(figure(client, run, "made") for run in runs) == [0, EPISODES * QUESTIONS * 31]
    assert_as_if_undisturbed(layout, finished, sweep)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_full_disk_is_named_damages_nothing_and_the_same_launch_finishes(
    client: DagsterClient, layout: Layout, finished: StageContext, sweep: Work
):
    outcomes = layout.root / sweep.kind
    outcomes.mkdir()
    with small_disk(outcomes, "64k"):
        full = client.materialize(sweep.asset, DATASET)
        assert client.finished(full) == "FAILURE"
        assert "No space left on device; free space" in problem(client, full)
        subprocess.run(["mount", "-o", "remount,size=64m", outcomes], check=True)
        assert client.finished(client.materialize(sweep.asset, DATASET)) == "SUCCESS"
        assert contents(layout, sweep) == contents(finished.layout, sweep)


def undo(client: DagsterClient, layout: Layout, work: Work) -> None:
    """Let nothing be there of what the work makes, nor be made by a run of an earlier test."""
    until(client.is_idle)
    shutil.rmtree(layout.root / work.kind, ignore_errors=True)
    layout.timings(work.timing).unlink(missing_ok=True)


def made(layout: Layout, work: Work) -> int:
    """Episodes that are finished."""
    return len(list((layout.root / work.kind).glob("*.jsonl")))


def contents(layout: Layout, work: Work) -> dict[str, bytes]:
    """Every file that the work makes, also those that should not be there."""
    return {path.name: path.read_bytes() for path in (layout.root / work.kind).iterdir()}


def assert_as_if_undisturbed(layout: Layout, undisturbed: StageContext, work: Work, kills: int = 0) -> None:
    """All is there, byte by byte, and each unit was made once, but for the one that a killed run was at."""
    assert contents(layout, work) == contents(undisturbed.layout, work)
    notes = layout.timings(work.timing).read_text(encoding="ascii").splitlines()
    times = Counter(json.loads(note)["key"] for note in notes)
    unnoted, again = work.units - len(times), len(notes) - len(times)
    assert 0 <= unnoted + again <= kills


def left_to_publish(layout: Layout) -> object:
    """Vector memories that PostgreSQL lacked until now."""
    settings = load_settings(REPOSITORY / "params.yaml", SETTINGS, {})
    return build(StageContext(layout, settings), "V").facts["publish vector: made"]


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


def kill_once_made(client: DagsterClient, layout: Layout, run: str, work: Work, count: int) -> None:
    """Kill a run in the middle of its work: when so many episodes are finished, and before all are."""
    process = until(lambda: process_of(client, run))
    until(lambda: made(layout, work) >= count)
    os.kill(process, signal.SIGKILL)
    assert count <= made(layout, work) < EPISODES


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
