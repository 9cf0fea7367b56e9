"""The services of a workspace, started and stopped from the command line as a person would."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mesa_pipeline.artifacts import RunningServices
from tests.conftest import REPOSITORY

MESA = (sys.executable, "-m", "mesa_pipeline.cli")
START_SECONDS = 600
GRAPH, CANDIDATES = "Asset graph", "Candidate policies"


@dataclass(frozen=True)
class Served:
    """Where a workspace is shown.

    Attributes:
        workspace: Its folder.
        graph: Address of Dagster.
        candidates: Address of MLflow; empty where it was not asked for.
    """

    workspace: Path
    graph: str
    candidates: str


@contextmanager
def served(workspace: Path, settings: Sequence[str] = (), options: Sequence[str] = ()) -> Iterator[Served]:
    """``mesa up`` on free ports, and ``mesa down`` afterwards; services that run already are used and left running."""
    if (running := RunningServices.of(workspace)) is not None:
        yield _of(workspace, running)
        return
    ports = ("--port", str(free_port()), "--mlflow-port", str(free_port()))
    try:
        mesa("up", "--workspace", str(workspace), *ports, *options, *(f"--set={setting}" for setting in settings))
        running = RunningServices.of(workspace)
        assert running is not None
        yield _of(workspace, running)
    finally:
        mesa("down", "--workspace", str(workspace))


def mesa(*arguments: str) -> str:
    """Run a ``mesa`` command; what it says goes into the failure where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*MESA, *arguments], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=START_SECONDS, check=False
    )
    assert done.returncode == 0, json.dumps({"arguments": arguments, "stdout": done.stdout, "stderr": done.stderr}, indent=1)
    return done.stdout


def free_port() -> int:
    """A port of the loopback interface that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _of(workspace: Path, running: RunningServices) -> Served:
    return Served(workspace, running.urls[GRAPH], running.urls.get(CANDIDATES, ""))
