"""Starting, stopping and seeing a workspace's services from outside."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mesa_pipeline.artifacts import RunningServices
from mesa_pipeline.artifacts.layout import is_held
from mesa_pipeline.artifacts.services import services_file
from mesa_pipeline.errors import WorkFailed
from mesa_pipeline.services.databases import DatabaseSize, sizes
from mesa_pipeline.services.groups import Identity, memory_bytes, own_memory_bytes
from mesa_pipeline.services.owner import end_leftovers
from mesa_pipeline.services.plan import POSTGRES
from mesa_pipeline.services.postmaster import end_orphan
from mesa_pipeline.services.record import OwnerStatus, ServiceStatus, State, services_layout
from mesa_pipeline.services.request import ServicesRequest
from mesa_pipeline.services.service import spawn, tail

LOGGER = logging.getLogger(__name__)
POLL_SECONDS = 0.1
STOP_PATIENCE_SECONDS = 120.0
"""Until an owner that was told to stop is killed; its services get their time one after the other."""
OWNER = "owner"
OWNER_MODULE = "mesa_pipeline.services.owner"

Watch = Callable[[OwnerStatus], None]


@dataclass(frozen=True)
class Snapshot:
    """How a workspace's services are.

    Attributes:
        up: Whether their owner runs.
        status: What it said last; ``None`` where it never did.
        memory: Bytes of memory by service.
        databases: Sizes of the databases.
    """

    up: bool
    status: OwnerStatus | None
    memory: dict[str, int]
    databases: list[DatabaseSize]

    @property
    def ready(self) -> bool:
        """Whether all that was asked for can be used."""
        return self.up and self.status is not None and self.status.ready


def start(request: ServicesRequest, watch: Watch) -> OwnerStatus:
    """Start the services of a request, or find them running, and wait until each is ready or has failed.

    Args:
        request: What is asked for; what runs already is left as it is.
        watch: Told where they stand whenever that changes.

    Raises:
        WorkFailed: The owner ended; says why, as its log does.
        ArtifactError: The workspace cannot be written.
    """
    owner = None if is_up(request.workspace) else _spawn_owner(request)
    said: OwnerStatus | None = None
    while True:
        ended = owner is not None and owner.poll() is not None
        status = running(request.workspace)
        if status is not None and status != said:
            said = status
            watch(status)
        if status is not None and status.settled and RunningServices.of(request.workspace):
            return status
        if (ended or owner is None) and not is_up(request.workspace):
            raise WorkFailed(f"the services do not start: {tail(owner_log(request.workspace)) or 'they were stopped'}")
        time.sleep(POLL_SECONDS)


def stop(workspace: Path, watch: Watch, seconds: float) -> bool:
    """Stop a workspace's services and whatever an owner that was killed left; waits until all is gone.

    Args:
        workspace: Whose.
        watch: Told where they stand whenever that changes.
        seconds: Given to what was left before it is killed.

    Returns:
        Whether there was anything to stop.
    """
    owner, said = _owner(workspace), None
    found = owner is not None
    deadline = time.monotonic() + STOP_PATIENCE_SECONDS
    if owner:
        _send(owner, signal.SIGTERM)
    while owner and owner.is_alive:
        status = OwnerStatus.read(workspace)
        if status is not None and status != said:
            said = status
            watch(status)
        if time.monotonic() > deadline:
            _send(owner, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
    left = end_leftovers(workspace, seconds)
    end_orphan(services_layout(workspace).root / POSTGRES / "data")
    services_file(workspace).unlink(missing_ok=True)
    return found or left > 0


def look(workspace: Path) -> Snapshot:
    """How a workspace's services are now."""
    up, status = is_up(workspace), OwnerStatus.read(workspace)
    if status is None:
        return Snapshot(up, None, {}, [])
    if not up:
        status = replace(status, services=tuple(map(_as_left, status.services)))
    services = RunningServices.of(workspace)
    alive = {service.name: service.process for service in status.services if service.process}
    memory = {OWNER: own_memory_bytes(status.owner), **{name: memory_bytes(process) for name, process in alive.items()}}
    return Snapshot(up, status, memory, sizes(services.databases) if services else [])


def is_up(workspace: Path) -> bool:
    """Whether an owner runs."""
    return is_held(services_layout(workspace))


def running(workspace: Path) -> OwnerStatus | None:
    """What the owner that runs says; ``None`` where none does, or it has said nothing yet."""
    status = OwnerStatus.read(workspace)
    return status if status and is_up(workspace) and status.owner.is_alive else None


def owner_log(workspace: Path) -> Path:
    """Where the owner says what it does."""
    return services_layout(workspace).root / "owner.log"


@contextmanager
def stopped_at_the_end(workspace: Path, seconds: float) -> Iterator[None]:
    """Stop the services on the way out, however that is taken."""
    try:
        yield
    finally:
        stop(workspace, lambda status: None, seconds)


def _spawn_owner(request: ServicesRequest) -> "subprocess.Popen[bytes]":
    request.write()
    log = owner_log(request.workspace)
    log.unlink(missing_ok=True)
    command = (sys.executable, "-m", OWNER_MODULE, str(request.workspace))
    return spawn(command, os.environ, log, bound=request.bound)


def _owner(workspace: Path) -> Identity | None:
    """The process that holds the lock."""
    if not is_up(workspace):
        return None
    with suppress(OSError, ValueError, ProcessLookupError):
        return Identity.of(int(services_layout(workspace).lock.read_text()))
    return None


def _send(owner: Identity, number: signal.Signals) -> None:
    if owner.is_alive:
        with suppress(ProcessLookupError):
            os.kill(owner.pid, number)


def _as_left(service: ServiceStatus) -> ServiceStatus:
    """A service without an owner: gone, or left over from one that was killed."""
    if service.process and service.process.is_alive:
        return replace(service, problem="its owner was killed; `mesa down` stops it")
    return replace(service, state=State.STOPPED, process=None)
