"""What `mesa up`, `mesa down` and `mesa status` say and exit with; the services themselves are tested in tests/services."""

import io
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from mesa_pipeline.artifacts import RunningServices, exclusive
from mesa_pipeline.cli import mesa
from mesa_pipeline.cli.services import require_ready
from mesa_pipeline.cli.services_view import COMING, GOING, ServicesView, show_status
from mesa_pipeline.cli.terminal import Terminal
from mesa_pipeline.errors import WorkFailed
from mesa_pipeline.services.control import Snapshot
from mesa_pipeline.services.databases import DatabaseSize
from mesa_pipeline.services.groups import Identity
from mesa_pipeline.services.record import OwnerStatus, ServiceStatus, State, services_layout

OWNER = Identity.of(os.getpid())
READY = ServiceStatus("webserver", State.READY, 0.0, OWNER, "http://127.0.0.1:3000", log="/x/logs/webserver.log")
FAILED = ServiceStatus(
    "mlflow", State.FAILED, 0.0, problem="ended by itself [/bold]\x07\nout of memory", log="/x/logs/mlflow.log"
)


def status_of(workspace: Path, *services: ServiceStatus) -> tuple[int, dict]:
    """Exit code and output of `mesa status` while an owner says this of its services."""
    with exclusive(services_layout(workspace)):
        OwnerStatus(OWNER, services).write(workspace)
        result = CliRunner().invoke(mesa, ["status", "--workspace", str(workspace), "--json"])
    return result.exit_code, json.loads(result.stdout)


def on_screen(terminal: bool = True) -> tuple[Terminal, io.StringIO]:
    """A terminal of 90 columns, and what is on it."""
    screen = io.StringIO()
    consoles = [
        Console(file=screen, force_terminal=terminal, width=90, soft_wrap=soft, highlight=False) for soft in (True, True, False)
    ]
    return Terminal(False, *consoles), screen


def test_the_exit_code_says_whether_all_can_be_used(tmp_path: Path):
    assert status_of(tmp_path, READY)[0] == 0
    for state in (State.STARTING, State.RESTARTING, State.FAILED):
        code, value = status_of(tmp_path, READY, ServiceStatus("mlflow", state, 0.0))
        assert code == 1 and value["ready"] is False
    assert CliRunner().invoke(mesa, ["status", "--workspace", str(tmp_path)]).exit_code == 3
    assert CliRunner().invoke(mesa, ["status", "--workspace", str(tmp_path / "new")]).exit_code == 3


def test_stopping_nothing_is_harmless(tmp_path: Path):
    result = CliRunner().invoke(mesa, ["down", "--workspace", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (0, "Nothing was running.\n")


def test_starting_what_runs_says_where_it_is(tmp_path: Path):
    with exclusive(services_layout(tmp_path)):
        OwnerStatus(OWNER, (READY,)).write(tmp_path)
        RunningServices(OWNER.pid, {}, {"Asset graph": "http://127.0.0.1:3000"}).write(tmp_path)
        result = CliRunner().invoke(mesa, ["up", "--workspace", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "They run already" in result.stdout
    assert "Asset graph: http://127.0.0.1:3000" in result.stdout


def test_a_service_that_failed_is_named_with_its_last_words():
    with pytest.raises(WorkFailed, match="mlflow failed") as caught:
        require_ready(OwnerStatus(OWNER, (READY, FAILED)))
    assert "out of memory" in str(caught.value) and "/x/logs/mlflow.log" in str(caught.value)
    assert "\x07" not in str(caught.value)
    require_ready(OwnerStatus(OWNER, (READY,)))


def test_a_table_says_how_all_is():
    terminal, screen = on_screen()
    databases = [DatabaseSize("dagster", 9 * 2**20), DatabaseSize("mlflow", None)]
    status = OwnerStatus(OWNER, (READY, FAILED), ("no wheel; SQLite files serve instead",))
    show_status(Snapshot(True, status, {"webserver": 126 * 2**20}, databases), terminal)
    shown = screen.getvalue()
    for text in ("http://127.0.0.1:3000", "126 MiB", "9 MiB", "not reached", "/x/logs", "no wheel", "[/bold]", "out of memory"):
        assert text in shown
    assert "\x07" not in shown


@pytest.mark.parametrize(("awaited", "says"), [(COMING, True), (GOING, False)])
def test_nothing_is_said_to_start_where_services_are_stopped(awaited, says: bool):
    terminal, screen = on_screen()
    with ServicesView(terminal, awaited):
        pass
    assert ("starting" in screen.getvalue()) is says


@pytest.mark.parametrize("drawn", [True, False])
def test_services_are_shown_as_they_come(drawn: bool):
    terminal, screen = on_screen(drawn)
    with ServicesView(terminal) as view:
        view.watch(OwnerStatus(OWNER, (READY, FAILED)))
        view.watch(OwnerStatus(OWNER, (READY, FAILED)))
    shown = screen.getvalue()
    assert "webserver" in shown and "ready" in shown and "failed" in shown
    assert "\x07" not in shown
    if not drawn:
        assert shown.count("webserver") == 1
