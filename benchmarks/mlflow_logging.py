"""Seconds that recording a candidate in MLflow takes: in a SQLite file, in PostgreSQL, and over the HTTP server of each.

Usage: python benchmarks/mlflow_logging.py [--candidates 30]

A candidate is what a search tells: ten figures, seven parameters, its source. Each place gets a search of its own; making its
tables is not counted. The servers' processes are ended at the end.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mesa_pipeline.services.postgres import EmbeddedPostgres
from mesa_pipeline.tracking import TrackedCandidate, TrackedSearch
from mesa_pipeline.tracking.mlflow import MlflowTracker

READY_SECONDS = 180.0
PARAMS = ("status", "direction", "slot", "parents", "hypothesis", "selections", "off_direction")
FIGURES = ("J", "C", "objective", "structures", "unscored", "train_J", "train_C", "train_objective", "iteration", "more")
SOURCE = "def select(state, q):\n    return ['S']\n" * 40


def candidate(number: int) -> TrackedCandidate:
    """One like a search's."""
    figures = {name: float(number) for name in FIGURES}
    return TrackedCandidate(f"{number:03}", figures, SOURCE, "policy.py", params=dict.fromkeys(PARAMS, "as it was"))


def seconds_each(uri: str, artifacts: Path | None, candidates: int) -> list[float]:
    """Wall time of each."""
    tracker = MlflowTracker(uri, artifacts)
    taken = []
    with tracker.search(TrackedSearch("benchmark", 0, uri)) as run:
        run.candidate(candidate(candidates))
        for number in range(candidates):
            started = time.perf_counter()
            run.candidate(candidate(number))
            taken.append(time.perf_counter() - started)
    return taken


@contextmanager
def server(store: str, artifacts: Path) -> Iterator[str]:
    """An MLflow server on a free port of the loopback interface."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "MLFLOW_BACKEND_STORE_URI": store,
        "MLFLOW_DEFAULT_ARTIFACT_ROOT": artifacts.as_uri(),
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    command = [str(Path(sys.executable).with_name("mlflow")), "server", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--workers", "1"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _await(f"{url}/health")
        yield url
    finally:
        process.terminate()
        process.wait()


def _await(url: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=30)
    count = parser.parse_args().candidates
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary,
        EmbeddedPostgres(Path(temporary) / "pg") as postgres,
    ):
        artifacts = Path(temporary) / "artifacts"
        postgres.ensure_database("mlflow")
        stores = {"SQLite": f"sqlite:///{temporary}/mlflow.db", "PostgreSQL": postgres.url("mlflow")}
        for name, store in stores.items():
            _show(name, seconds_each(store, artifacts, count))
            with server(store, artifacts) as url:
                _show(f"{name} over HTTP", seconds_each(url, None, count))


def _show(name: str, taken: list[float]) -> None:
    load = os.getloadavg()[0]
    print(f"{name:24} median {statistics.median(taken):.3f} s, fastest {min(taken):.3f} s a candidate (load {load:.1f})")


if __name__ == "__main__":
    main()
