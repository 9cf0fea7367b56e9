"""The one process that owns a workspace's services: ``python -m mesa_pipeline.services.owner WORKSPACE``.

It holds the lock of ``workspace/services``, so there is one; what it starts ends when it does. ``SIGTERM`` stops everything in
order. What an earlier owner left that was killed is stopped before anything is started.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from mesa_pipeline.artifacts import RunningServices, exclusive
from mesa_pipeline.artifacts.services import services_file
from mesa_pipeline.errors import MesaError
from mesa_pipeline.services.databases import EmbeddedPostgresService, team_databases
from mesa_pipeline.services.groups import Identity, end_families
from mesa_pipeline.services.plan import POSTGRES, TITLES, Plan
from mesa_pipeline.services.postgres import unavailable
from mesa_pipeline.services.record import OwnerStatus, ServiceStatus, services_layout
from mesa_pipeline.services.request import ServicesRequest
from mesa_pipeline.services.service import ProgramService, Service, spawn
from mesa_pipeline.services.supervisor import Supervisor

LOGGER = logging.getLogger(__name__)
POLL_SECONDS = 0.2
CANNOT_WORK = 2


class Owner:
    """Runs the services of a request until told to stop.

    Args:
        request: What is asked for.
        told_to_stop: Set from outside when it is enough.
    """

    def __init__(self, request: ServicesRequest, told_to_stop: threading.Event) -> None:
        self._request = request
        self._told_to_stop = told_to_stop
        self._identity = Identity.of(os.getpid())
        self._notes: tuple[str, ...] = ()
        self._databases: Mapping[str, str] = {}
        self._catch_up: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Own the services.

        Raises:
            WorkspaceBusy: Another process does.
            ConfigError, MissingDependency: The PostgreSQL that the settings name cannot be used.
        """
        workspace = self._request.workspace
        with exclusive(services_layout(workspace)):
            services_layout(workspace).root.chmod(0o700)
            services_file(workspace).unlink(missing_ok=True)
            end_leftovers(workspace, self._request.settings.services.stop_seconds)
            self._say(())
            plan, services = self._planned()
            supervisor = Supervisor(services, self._request.settings.services, self._say)
            try:
                while not self._told_to_stop.wait(POLL_SECONDS):
                    supervisor.step()
                    if not self._is_announced and OwnerStatus(self._identity, supervisor.statuses).settled:
                        self._announce(supervisor.statuses)
                        self._catch_up = self._started_catch_up(plan)
            finally:
                services_file(workspace).unlink(missing_ok=True)
                self._stop_catch_up()
                supervisor.stop()

    def _planned(self) -> tuple[Plan, list[Service]]:
        """What is to run, and where its databases are."""
        settings = self._request.settings.services
        logs = Plan(self._request, {}).log(POSTGRES).parent
        logs.mkdir(parents=True, exist_ok=True)
        for log in logs.glob("*.log"):
            log.replace(log.with_suffix(".log.1"))
        servers: list[Service] = []
        if settings.postgres == "url":
            self._databases = team_databases(settings)
        elif settings.postgres == "embedded":
            reason = unavailable()
            if reason:
                self._notes = (f"{reason}; SQLite files serve instead",)
            else:
                postgres = EmbeddedPostgresService(services_layout(self._request.workspace).root / POSTGRES, settings)
                servers, self._databases = [postgres], postgres.databases
        plan = Plan(self._request, self._databases, tuple(server.name for server in servers))
        return plan, [*servers, *map(ProgramService, plan.programs())]

    def _say(self, statuses: Sequence[ServiceStatus]) -> None:
        OwnerStatus(self._identity, tuple(statuses), self._notes).write(self._request.workspace)

    @property
    def _is_announced(self) -> bool:
        return services_file(self._request.workspace).exists()

    def _announce(self, statuses: Sequence[ServiceStatus]) -> None:
        """Let whoever works in the workspace use what runs."""
        urls = {TITLES[status.name]: status.url for status in statuses if status.url}
        RunningServices(self._identity.pid, dict(self._databases), urls).write(self._request.workspace)

    def _started_catch_up(self, plan: Plan) -> "subprocess.Popen[bytes] | None":
        """Have searches made while no PostgreSQL ran recorded there too. Nothing depends on it; its log says how it went."""
        if not self._request.settings.tracking.enabled:
            return None
        return spawn(plan.catch_up_command, plan.environment, plan.log("track"))

    def _stop_catch_up(self) -> None:
        if self._catch_up and self._catch_up.poll() is None:
            self._catch_up.terminate()
            self._catch_up.wait()


def end_leftovers(workspace: Path, seconds: float) -> int:
    """End what an owner that was killed left running, and say how many processes that were. PostgreSQL sees to itself."""
    said = OwnerStatus.read(workspace)
    leaders = [service.process for service in said.services if service.process and service.name != POSTGRES] if said else []
    return end_families(leaders, seconds)


def main() -> None:
    """Entry point."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    told_to_stop = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        told_to_stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        Owner(ServicesRequest.read(Path(sys.argv[1])), told_to_stop).run()
    except MesaError as error:
        LOGGER.error("%s", error)
        sys.exit(CANNOT_WORK)


if __name__ == "__main__":
    main()
