"""``mesa ui``: the asset graph in the browser."""

import signal
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from mesa_pipeline.cli.options import Options, pipeline_options
from mesa_pipeline.cli.services import requested, require_ready, service_options, start
from mesa_pipeline.errors import WorkFailed
from mesa_pipeline.services import control
from mesa_pipeline.services.plan import WEBSERVER
from mesa_pipeline.services.record import OwnerStatus, State

POLL_SECONDS = 0.5


@click.command("ui")
@service_options
@click.option("--open", "open_browser", is_flag=True, help="Open the browser once it is there.")
@pipeline_options
def ui_command(options: Options, port: int | None, mlflow_port: int | None, mlflow: bool, open_browser: bool) -> None:
    """Open the asset graph (Dagster) and the candidate policies (MLflow) on this machine, until Ctrl-C.

    Every asset can be materialised from there. --dataset and --data say where a dataset that needs files has them. The services
    are those of `mesa up`; where that has started them, this command shows them and leaves them running.
    """
    request = requested(options, port, mlflow_port, mlflow, bound=True)
    if control.is_up(request.workspace):
        status = start(request, options.terminal)
        require_ready(status)
        _open(status, open_browser)
        options.terminal.say("They were started before, and stay; `mesa down` stops them.")
        return
    stop_seconds = options.settings.services.stop_seconds
    with _terminated_as_interrupted(), control.stopped_at_the_end(request.workspace, stop_seconds):
        status = start(request, options.terminal)
        require_ready(status)
        options.terminal.say("Ctrl-C stops it.")
        _open(status, open_browser)
        _watch(request.workspace)


def _open(status: OwnerStatus, wanted: bool) -> None:
    url = next((service.url for service in status.services if service.name == WEBSERVER), None)
    if wanted and url:
        webbrowser.open(url)


def _watch(workspace: Path) -> None:
    """Wait until the services end, or one of them cannot be kept.

    Raises:
        WorkFailed: Which, and why.
    """
    while status := control.running(workspace):
        if any(service.state is State.FAILED for service in status.services):
            require_ready(status)
        time.sleep(POLL_SECONDS)
    raise WorkFailed(f"the services were stopped; see {control.owner_log(workspace)}")


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Unwind on SIGTERM as on Ctrl-C, so that what was started is stopped."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
