"""What the owner says of its services, in a file that whoever asks can read: also after the owner was killed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from mesa_pipeline.artifacts import Layout, read_json, write_sealed_json
from mesa_pipeline.artifacts.services import SERVICES
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.services.groups import Identity


class State(StrEnum):
    """Of one service."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ServiceStatus:
    """One service.

    Attributes:
        name: What it is.
        state: Where it stands.
        since: When it came to stand there, in seconds since 1970.
        process: Its process, the leader of a group; ``None`` where it has none.
        url: Its address, if it has one for people.
        restarts: How often it was started again after it ended by itself, of late.
        problem: Why it is not ready, or was started again, with the last lines of its log; empty where nothing was wrong.
        log: Where it writes its log.
    """

    name: str
    state: State
    since: float
    process: Identity | None = None
    url: str | None = None
    restarts: int = 0
    problem: str = ""
    log: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        process = value["process"]
        return cls(**{**value, "state": State(value["state"]), "process": Identity(**process) if process else None})


@dataclass(frozen=True)
class OwnerStatus:
    """The owner and its services.

    Attributes:
        owner: The process that started them.
        services: In the order they are started.
        notes: What a person should know, such as why there is no PostgreSQL.
    """

    owner: Identity
    services: tuple[ServiceStatus, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether there is nothing to wait for."""
        return bool(self.services) and all(service.state in (State.READY, State.FAILED) for service in self.services)

    @property
    def ready(self) -> bool:
        """Whether every service does what it is there for."""
        return bool(self.services) and all(service.state is State.READY for service in self.services)

    @classmethod
    def read(cls, workspace: Path) -> Self | None:
        """What was said last; ``None`` where nothing was, or it cannot be read."""
        try:
            value = read_json(status_file(workspace), "mesa up")
            services = tuple(ServiceStatus.from_json(service) for service in value["services"])
            return cls(Identity(**value["owner"]), services, tuple(value["notes"]))
        except (ArtifactError, KeyError, TypeError, ValueError):
            return None

    def write(self, workspace: Path) -> None:
        """Say it."""
        write_sealed_json(status_file(workspace), asdict(self))


def services_layout(workspace: Path) -> Layout:
    """Where the services of a workspace keep what is theirs; its lock is the owner's."""
    return Layout(workspace, SERVICES)


def status_file(workspace: Path) -> Path:
    """Where it stands."""
    return services_layout(workspace).root / "status.json"
