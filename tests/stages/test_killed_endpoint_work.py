"""Work that waits for a slow endpoint, killed for good: the rerun asks for nothing that was answered, and makes the same."""

import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import LEDGER, REPLIES
from mesa_pipeline.llm.ledger import Ledger
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.stages.baselines import run_baseline
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.optimize import optimize
from mesa_pipeline.stages.sweep import sweep
from mesa_pipeline.tracking import NullTracker
from mesa_pipeline.types import Summary
from tests.conftest import REPOSITORY
from tests.llm.misbehaving_server import Logged, MisbehavingServer
from tests.pipeline import copy_of
from tests.stages.endpoint_model import (
    RECALL_TOKENS,
    RepliesThenSilence,
    body_of,
    contents,
    context_of,
    overrides,
    prepared,
    reply,
    role_of,
)

WAIT_SECONDS = 120
LATENCY = 0.02


@dataclass(frozen=True)
class Work:
    """A stage, the settings under which it asks the model, and what it makes.

    Attributes:
        command: Of the command line, for the process that is killed.
        stage: The same in this process.
        settings: Changes to those of ``endpoint_model``.
        made: A folder, below the dataset's.
        replies: After so many of them it is killed.
        roles: In which the model is asked.
    """

    command: tuple[str, ...]
    stage: Callable[[StageContext], Summary]
    settings: tuple[str, ...]
    made: str
    replies: int
    roles: frozenset[str]


SUMMARIES = Work(
    command=("build", "--structure", "S"),
    stage=partial(build, code="S"),
    settings=("structures.summary.builder=llm", "structures.summary.window_chars=600"),
    made="memories/summary",
    replies=6,
    roles=frozenset({"summarize"}),
)
GRAPHS = Work(
    command=("build", "--structure", "G"),
    stage=partial(build, code="G"),
    settings=("structures.graph.builder=llm", "structures.graph.passage_chars=900"),
    made="memories/graph",
    replies=7,
    roles=frozenset({"extract"}),
)
SWEEP = Work(
    command=("sweep",),
    stage=sweep,
    settings=("reading.reader=llm", "evaluation.reward=llm_judge"),
    made="outcomes",
    replies=91,
    roles=frozenset({"answer", "judge"}),
)
SEARCH = Work(
    command=("optimize",),
    stage=partial(optimize, seed=0, tracker=NullTracker()),
    settings=("search.proposer=llm",),
    made="policies",
    replies=3,
    roles=frozenset({"propose"}),
)
BASELINE = Work(
    command=("baselines", "run", "--system", "memgpt"),
    stage=partial(run_baseline, code="memgpt"),
    settings=("reading.reader=llm", f"baselines.memgpt.max_tokens={RECALL_TOKENS}"),
    made="baselines/memgpt",
    replies=13,
    roles=frozenset({"recall", "answer"}),
)


@pytest.fixture(scope="module")
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(otherwise=reply, latency=LATENCY) as server:
        yield server


@pytest.fixture(scope="module")
def swept(server: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory) -> StageContext:
    """A workspace made without the model; do not change it."""
    context = prepared(context_of(tmp_path_factory.mktemp("swept"), server.base_url))
    sweep(context)
    return context


def start(work: Work, server: MisbehavingServer, workspace: Path) -> "subprocess.Popen[str]":
    settings = [part for override in overrides(server.base_url, *work.settings) for part in ("--set", override)]
    command = [sys.executable, "-m", "mesa_pipeline.cli", *work.command, "--workspace", str(workspace), *settings]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def run(work: Work, server: MisbehavingServer, workspace: Path) -> Summary:
    summary = work.stage(context_of(workspace, server.base_url, *work.settings))
    assert summary.failed == ()
    return summary


def wait_until_kept(workspace: Path, replies: int) -> None:
    """Wait until so many replies are in the cache: what was received and not yet kept when a kill comes is lost."""
    deadline = time.monotonic() + WAIT_SECONDS
    with closing(sqlite3.connect(workspace / REPLIES)) as connection:
        while connection.execute("select count(*) from replies").fetchone()[0] < replies:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def texts(requests: list[Logged]) -> Counter[str]:
    """How often each text was asked for."""
    return Counter(body_of(request) for request in requests if role_of(request) != "embed")


@pytest.mark.parametrize(
    "work", [SUMMARIES, GRAPHS, SWEEP, SEARCH, BASELINE], ids=["summaries", "graphs", "sweep", "search", "baseline"]
)
def test_a_rerun_asks_for_nothing_that_was_answered_and_makes_the_same(
    work: Work, server: MisbehavingServer, swept: StageContext, tmp_path: Path
):
    sandbox = open_sandbox(swept.settings.policies.sandbox)
    if work is SEARCH and sandbox.tier != "kernel":
        pytest.skip(f"this system cannot confine a model's code: {sandbox.confinement}")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for workspace in (whole, killed):
        copy_of(swept, workspace)
    server.otherwise = reply
    server.requests.clear()
    run(work, server, whole)
    wanted = texts(server.requests)
    assert {role_of(request) for request in server.requests} - {"embed"} == work.roles
    assert set(wanted.values()) == {1}
    assert len(wanted) > work.replies

    server.otherwise = endpoint = RepliesThenSilence(work.replies)
    server.requests.clear()
    server.finished.clear()
    process = start(work, server, killed)
    assert endpoint.silent.wait(WAIT_SECONDS)
    wait_until_kept(killed, work.replies)
    process.kill()
    process.communicate(timeout=WAIT_SECONDS)
    assert len(texts(server.finished)) == work.replies
    left_waiting = texts(server.requests) - texts(server.finished)

    server.otherwise = reply
    run(work, server, killed)
    assert texts(server.finished) == wanted
    assert texts(server.requests) == wanted + left_waiting
    made = contents(killed / "synthetic" / work.made)
    assert made == contents(whole / "synthetic" / work.made)
    asked = sum(line.attempts for line in Ledger(killed / LEDGER).spending() if line.phase != "embed")
    assert asked == len(wanted)
    assert run(work, server, killed).made == 0
    assert texts(server.finished) == wanted
