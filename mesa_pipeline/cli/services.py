"""``mesa up``, ``mesa down`` and ``mesa status``: Dagster, MLflow and PostgreSQL on this machine."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import click

from mesa_pipeline.artifacts import RunningServices
from mesa_pipeline.cli.options import Options, pipeline_options, settings_options
from mesa_pipeline.cli.services_view import GOING, ServicesView, show_status
from mesa_pipeline.cli.terminal import CONTROLS, Terminal
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import WorkFailed
from mesa_pipeline.services import control
from mesa_pipeline.services.record import OwnerStatus, ServiceStatus, State
from mesa_pipeline.services.request import ServicesRequest

EXIT_NOT_READY, EXIT_DOWN = 1, 3
"""Of ``mesa status``; the latter is what service managers exit with."""


def service_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which services are wanted."""
    for option in (
        click.option(
            "--mlflow/--no-mlflow", default=True, show_default=True, help="Show the candidate policies in MLflow too."
        ),
        click.option(
            "--mlflow-port", type=int, help="Port of MLflow; a free one if it is taken. [default: services.mlflow_port]"
        ),
        click.option("--port", type=int, help="Port of the asset graph; a free one if it is taken. [default: services.port]"),
    ):
        command = option(command)
    return command


@click.command("up")
@service_options
@pipeline_options
def up_command(options: Options, port: int | None, mlflow_port: int | None, mlflow: bool) -> None:
    """Start PostgreSQL, the asset graph (Dagster) and MLflow on this machine, and leave them running.

    What is made meanwhile, also by `mesa run`, is recorded in PostgreSQL. Harmless when they run already.
    """
    request = requested(options, port, mlflow_port, mlflow)
    status = start(request, options.terminal)
    options.terminal.say(f"`mesa status{_workspace_option(options.workspace)}` shows them, `mesa down` stops them.")
    options.terminal.result(asdict(status))
    require_ready(status)


@click.command("down")
@settings_options
def down_command(settings: Settings, workspace: Path, terminal: Terminal) -> None:
    """Stop what `mesa up` started, and what is left of it after a crash. Harmless when nothing runs."""
    with ServicesView(terminal, GOING) as view:
        found = control.stop(workspace.absolute(), view.watch, settings.services.stop_seconds)
    terminal.say("All stopped." if found else "Nothing was running.")
    terminal.result({"stopped": found})


@click.command("status")
@settings_options
def status_command(settings: Settings, workspace: Path, terminal: Terminal) -> None:
    """Show the services, their addresses, memory, logs and databases.

    Exit code 0: all can be used; 1: some cannot (yet); 3: they are down.
    """
    snapshot = control.look(workspace.absolute())
    show_status(snapshot, terminal)
    terminal.result({**asdict(snapshot), "ready": snapshot.ready})
    if not snapshot.up:
        sys.exit(EXIT_DOWN)
    if not snapshot.ready:
        sys.exit(EXIT_NOT_READY)


def requested(
    options: Options, port: int | None, mlflow_port: int | None, mlflow: bool, bound: bool = False
) -> ServicesRequest:
    """The services that a command's options ask for."""
    ports = {name: value for name, value in (("port", port), ("mlflow_port", mlflow_port)) if value is not None}
    services = options.settings.services.model_copy(update=ports)
    return ServicesRequest(
        workspace=options.workspace.absolute(),
        settings=options.settings.model_copy(update={"services": services}),
        data_paths={options.dataset: options.data} if options.data else {},
        with_mlflow=mlflow,
        bound=bound,
    )


def start(request: ServicesRequest, terminal: Terminal) -> OwnerStatus:
    """Start services or find them running, show how that goes, and then where they are."""
    if control.is_up(request.workspace):
        terminal.say("They run already; what this command asks for beyond that is ignored.")
    with ServicesView(terminal) as view:
        status = control.start(request, view.watch)
    for note in status.notes:
        terminal.say(f"Note: {note}.")
    running = RunningServices.of(request.workspace)
    for title, url in sorted(running.urls.items()) if running else ():
        terminal.say(f"{title}: {url}")
    return status


def require_ready(status: OwnerStatus) -> None:
    """Raise where a service cannot be used.

    Raises:
        WorkFailed: One cannot; says which, why, and where its log is.
    """
    broken = [service for service in status.services if service.state is not State.READY]
    if broken:
        raise WorkFailed("\n".join(map(_complaint, broken)))


def _complaint(service: ServiceStatus) -> str:
    problem = service.problem.translate(CONTROLS) or "no reason given"
    return f"{service.name} {service.state}: {problem}\nits log: {service.log}"


def _workspace_option(workspace: Path) -> str:
    return "" if workspace == Path("workspace") else f" --workspace {workspace}"
