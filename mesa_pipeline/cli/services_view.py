"""How services come and go on a terminal, and how they are."""

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.table import Table
from rich.text import Text

from mesa_pipeline.cli.terminal import CONTROLS, Terminal
from mesa_pipeline.services.control import Snapshot
from mesa_pipeline.services.record import OwnerStatus, ServiceStatus, State

STYLES = {
    State.WAITING: "dim",
    State.STARTING: "yellow",
    State.READY: "green",
    State.RESTARTING: "yellow",
    State.FAILED: "bold red",
    State.STOPPED: "dim",
}
COMING = (State.READY, State.RESTARTING, State.FAILED)
GOING = (State.STOPPED,)
MEBIBYTE = 2**20


class ServicesView:
    """Draws the services again and again on a terminal; anywhere else a line for each that came to something.

    Args:
        terminal: Where to.
        noteworthy: What is worth such a line.
    """

    def __init__(self, terminal: Terminal, noteworthy: Sequence[State] = COMING) -> None:
        self._terminal = terminal
        self._noteworthy = noteworthy
        self._began = time.monotonic()
        self._told: dict[str, State] = {}
        self._status: OwnerStatus | None = None
        drawn = terminal.err.is_terminal and not terminal.as_json
        self._live = Live(console=terminal.live, get_renderable=self._draw, refresh_per_second=4) if drawn else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    def watch(self, status: OwnerStatus) -> None:
        """Show where services stand."""
        self._status = status
        if self._live:
            return
        for service in status.services:
            if service.state in self._noteworthy and self._told.get(service.name) is not service.state:
                self._told[service.name] = service.state
                self._terminal.say(f"{service.name:<12} {service.state:<10} {time.monotonic() - self._began:5.1f} s")

    def _draw(self) -> Table:
        table = Table.grid(padding=(0, 2))
        services = self._status.services if self._status else ()
        for service in services:
            seconds = time.time() - service.since if service.state in (State.STARTING, State.RESTARTING) else None
            waited = f"{seconds:.0f} s" if seconds is not None else ""
            table.add_row(service.name, _state(service), waited, Text(_first_line(service.problem)))
        if not services and State.READY in self._noteworthy:
            table.add_row("starting ...", "", "", "")
        return table


def show_status(snapshot: Snapshot, terminal: Terminal) -> None:
    """Show a table of services, and one of databases."""
    if snapshot.status is None:
        terminal.say("Nothing runs. `mesa up` starts the services.")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("service", "state", "pid", "memory", "for", "restarts", "address"):
        table.add_column(column, justify="right" if column in ("pid", "memory", "restarts") else "left", no_wrap=True)
    for service in snapshot.status.services:
        table.add_row(
            service.name,
            _state(service),
            str(service.process.pid) if service.process else "",
            _mebibytes(snapshot.memory.get(service.name)),
            _duration(time.time() - service.since),
            str(service.restarts or ""),
            service.url or "",
        )
    if not terminal.as_json:
        terminal.out.print(table)
    total = sum(snapshot.memory.values())
    owner = f"owner {snapshot.status.owner.pid}, {_mebibytes(total)} in all" if snapshot.up else "No owner runs: `mesa up`."
    terminal.say(f"\n{owner}")
    _show_rest(snapshot, snapshot.status, terminal)


def _show_rest(snapshot: Snapshot, status: OwnerStatus, terminal: Terminal) -> None:
    for database in snapshot.databases:
        terminal.say(f"database {database.name:<10} {_mebibytes(database.size_bytes) or 'not reached'}")
    for folder in sorted({str(Path(service.log).parent) for service in status.services}):
        terminal.say(f"logs     {folder}")
    for note in status.notes:
        terminal.say(f"note     {note}")
    for service in status.services:
        if service.problem and service.state is not State.STOPPED:
            terminal.say(f"\n{service.name}, {service.state}: {service.problem}")


def _state(service: ServiceStatus) -> Text:
    return Text(str(service.state), STYLES[service.state])


def _first_line(text: str) -> str:
    return text.partition("\n")[0].translate(CONTROLS)


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _mebibytes(size: int | None) -> str:
    return "" if size is None else f"{size / MEBIBYTE:,.0f} MiB"
