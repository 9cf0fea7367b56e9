"""When services are started, started again, given up and stopped; with obedient services and a clock that is set."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mesa_pipeline.config import ServicesSettings, Settings
from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.services.groups import Identity
from mesa_pipeline.services.record import ServiceStatus, State
from mesa_pipeline.services.supervisor import Supervisor

READY_SECONDS = 60.0


@dataclass
class Told:
    """A service that does as a test says."""

    name: str
    after: tuple[str, ...] = ()
    ready: bool = True
    cause_of_death: str | None = None
    cannot_start: str | None = None
    url: str | None = None
    log: Path = Path("no-such-log")
    journal: list[str] = field(default_factory=list)

    def start(self) -> Identity:
        self.journal.append(f"start {self.name}")
        self.cause_of_death = None
        if self.cannot_start:
            raise MissingDependency(self.cannot_start)
        return Identity(4_000_000, 0.0)

    def ended(self) -> str | None:
        return self.cause_of_death

    def is_ready(self) -> bool:
        return self.ready

    def stop(self, seconds: float) -> None:
        self.journal.append(f"stop {self.name}")


class Trial:
    """A supervisor, its clock, and what it said."""

    def __init__(self, settings: ServicesSettings, *services: Told) -> None:
        self.now = 1000.0
        self.said: list[tuple[ServiceStatus, ...]] = []
        self.journal: list[str] = []
        for service in services:
            service.journal = self.journal
        self.supervisor = Supervisor(services, settings, self.said.append, lambda: self.now)

    def steps(self, count: int = 4, seconds: float = 0.0) -> dict[str, State]:
        for _ in range(count):
            self.now += seconds
            self.supervisor.step()
        return {status.name: status.state for status in self.supervisor.statuses}

    def status(self, name: str) -> ServiceStatus:
        return next(status for status in self.supervisor.statuses if status.name == name)


@pytest.fixture
def patience(settings: Settings) -> ServicesSettings:
    restarts = settings.services.restarts.model_copy(
        update={"limit": 2, "backoff_seconds": 1.0, "max_backoff_seconds": 30.0, "settled_seconds": 100.0}
    )
    return settings.services.model_copy(update={"restarts": restarts, "ready_seconds": READY_SECONDS})


def test_a_service_is_started_once_all_that_it_needs_is_ready(patience: ServicesSettings):
    database, server = Told("database", ready=False), Told("server", ("database",))
    trial = Trial(patience, database, server)
    assert trial.steps() == {"database": State.STARTING, "server": State.WAITING}
    database.ready = True
    assert trial.steps() == {"database": State.READY, "server": State.READY}
    assert trial.journal == ["start database", "start server"]


def test_one_that_ends_by_itself_is_started_again_after_a_pause_that_doubles(patience: ServicesSettings):
    server = Told("server")
    trial = Trial(patience, server)
    trial.steps()
    starts = []
    for pause in (1.0, 2.0):
        server.cause_of_death = "killed by SIGKILL"
        assert trial.steps(1) == {"server": State.RESTARTING}
        assert trial.steps(1, pause - 0.1) == {"server": State.RESTARTING}
        assert trial.steps(2, 0.1) == {"server": State.READY}
        starts.append(trial.journal.count("start server"))
    assert starts == [2, 3]
    assert "killed by SIGKILL" in trial.status("server").problem
    assert trial.status("server").restarts == 2


def test_one_that_keeps_ending_is_given_up_and_so_is_what_needs_it(patience: ServicesSettings):
    database = Told("database", cannot_start="no room on the disk")
    trial = Trial(patience, database, Told("server", ("database",)), Told("other"))
    assert trial.steps(40, 1.0) == {"database": State.FAILED, "server": State.FAILED, "other": State.READY}
    assert trial.journal.count("start database") == 3
    assert "no room on the disk" in trial.status("database").problem
    assert "database" in trial.status("server").problem
    assert "start server" not in trial.journal


def test_earlier_ends_are_forgotten_after_a_while_of_service(patience: ServicesSettings):
    server = Told("server")
    trial = Trial(patience, server)
    for _ in range(5):  # more often than the limit
        trial.steps(4, 2.0)
        trial.steps(1, 101.0)
        assert trial.status("server").restarts == 0
        server.cause_of_death = "exit code 1"
        assert trial.steps(1) == {"server": State.RESTARTING}


def test_what_needs_one_that_is_started_again_waits_for_it_only_where_it_has_to_start_too(patience: ServicesSettings):
    code, web, other = Told("code"), Told("web", ("code",)), Told("other", ("code",))
    trial = Trial(patience, code, web, other)
    trial.steps()
    code.cause_of_death = web.cause_of_death = "killed by SIGKILL"
    code.ready = False
    assert trial.steps(4, 1.0) == {"code": State.STARTING, "web": State.RESTARTING, "other": State.READY}
    code.ready = True
    assert trial.steps() == {"code": State.READY, "web": State.READY, "other": State.READY}


def test_one_that_never_answers_is_stopped_and_started_again(patience: ServicesSettings):
    trial = Trial(patience, Told("server", ready=False))
    trial.steps(1)
    assert trial.steps(1, READY_SECONDS) == {"server": State.STARTING}
    assert trial.steps(1, 0.5) == {"server": State.RESTARTING}
    assert trial.journal == ["start server", "stop server"]
    assert f"{READY_SECONDS:.0f} s" in trial.status("server").problem


def test_what_others_need_is_stopped_last(patience: ServicesSettings):
    trial = Trial(patience, Told("database"), Told("code", ("database",)), Told("web", ("code", "database")))
    trial.steps()
    trial.supervisor.stop()
    assert trial.journal[-3:] == ["stop web", "stop code", "stop database"]
    assert {status.state for status in trial.supervisor.statuses} == {State.STOPPED}


def test_what_the_log_said_last_is_kept(patience: ServicesSettings, tmp_path: Path):
    log = tmp_path / "server.log"
    log.write_bytes(b"starting\n\n\xff broken bytes\nout of \x1b[31mluck\n")
    server = Told("server", log=log)
    trial = Trial(patience, server)
    trial.steps()
    server.cause_of_death = "exit code 1"
    trial.steps(1)
    assert trial.status("server").problem.splitlines()[0] == "ended by itself, exit code 1"
    assert "out of luck" in trial.status("server").problem


def test_it_speaks_only_of_changes(patience: ServicesSettings):
    trial = Trial(patience, Told("server"))
    trial.steps(10)
    assert [states(said) for said in trial.said] == [[State.STARTING], [State.READY]]


def states(statuses: Sequence[ServiceStatus]) -> list[State]:
    return [status.state for status in statuses]
