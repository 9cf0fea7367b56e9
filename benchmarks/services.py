"""Seconds from click to first step, to a run's end, and of starting and stopping everything: ``python -m benchmarks.services``.

Each storage has a new workspace. Prints one JSON object a storage.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from mesa_pipeline.config import load_settings
from mesa_pipeline.services import control
from mesa_pipeline.services.plan import WEBSERVER
from mesa_pipeline.services.probes import free_port
from mesa_pipeline.services.request import ServicesRequest
from tests.services.dagster_client import DagsterClient

CLICKS = 5
SMALL = (
    "datasets.synthetic.episodes=5",
    "datasets.synthetic.steps=10",
    "datasets.synthetic.questions=2",
    "splits.seeds=[0]",
    "run.workers=1",
)


def measure(storage: str, folder: Path) -> dict[str, object]:
    """Figures of one storage, ``embedded`` or ``none``."""
    ports = f"services.port={free_port()}", f"services.mlflow_port={free_port()}"
    settings = load_settings(overrides=[*SMALL, *ports, f"services.postgres={storage}"])
    request = ServicesRequest(folder, settings, bound=True)
    figures: dict[str, object] = {"storage": storage}
    for attempt in ("first_up", "second_up"):
        began = time.monotonic()
        status = control.start(request, lambda status: None)
        figures[attempt] = round(time.monotonic() - began, 1)
        if attempt == "first_up":
            _stopped(folder, figures, "first_down")
    client = DagsterClient(next(service.url for service in status.services if service.name == WEBSERVER) or "")
    runs = [_click(client) for _ in range(CLICKS)]
    figures["click_to_first_step"] = [round(first, 2) for first, _ in runs]
    figures["click_to_end"] = [round(end, 2) for _, end in runs]
    figures["median_to_first_step"] = round(statistics.median(first for first, _ in runs), 2)
    figures["memory_mib"] = {name: round(size / 2**20) for name, size in control.look(folder).memory.items()}
    began = time.monotonic()
    control.look(folder)
    figures["look"] = round(time.monotonic() - began, 2)
    _stopped(folder, figures, "down")
    return figures


def _click(client: DagsterClient) -> tuple[float, float]:
    clicked = time.time()
    run = client.materialize("raw_trajectories", "synthetic")
    assert client.finished(run) == "SUCCESS"
    events = client.events(run)
    first = next(when for kind, when in events if kind == "ExecutionStepStartEvent")
    return first - clicked, events[-1][1] - clicked


def _stopped(folder: Path, figures: dict[str, object], name: str) -> None:
    began = time.monotonic()
    control.stop(folder, lambda status: None, 20.0)
    figures[name] = round(time.monotonic() - began, 1)


if __name__ == "__main__":
    for storage in sys.argv[1:] or ("embedded", "none"):
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(storage, Path(folder) / "workspace"), indent=1))
