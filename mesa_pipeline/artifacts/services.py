"""Which services run for a workspace: written by their owner, read by whoever wants to use them."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from mesa_pipeline.artifacts.files import read_json, write_sealed_json
from mesa_pipeline.artifacts.layout import Layout, is_held
from mesa_pipeline.errors import ArtifactError

SERVICES = "services"
"""Folder of the workspace, and name of the lock that the owner holds."""
ORCHESTRATION, TRACKING, STORES = "dagster", "mlflow", "mesa"
"""The databases."""
POLICIES_SHOWN = "Candidate policies"
"""What MLflow's server shows, by which its address is found."""


@dataclass(frozen=True)
class RunningServices:
    """Addresses of what runs for a workspace.

    Attributes:
        owner: Process id of the one that started them all.
        databases: PostgreSQL address by database (``dagster``, ``mlflow``, ``mesa``); none where there is no PostgreSQL.
        urls: Address of each web server, by what it shows.
    """

    owner: int
    databases: dict[str, str] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, workspace: Path) -> Self | None:
        """Those of a workspace; ``None`` where none run."""
        layout = Layout(workspace, SERVICES)
        path = services_file(workspace)
        if not path.exists() or not is_held(layout):
            return None
        try:
            return cls(**read_json(path, "mesa up"))
        except (TypeError, ArtifactError):
            return None

    def write(self, workspace: Path) -> None:
        """Say that these run; only their owner does, which holds the lock. A team's address may hold a password."""
        write_sealed_json(services_file(workspace), asdict(self), private=True)


def services_file(workspace: Path) -> Path:
    """Where the addresses stand."""
    return Layout(workspace, SERVICES).root / "running.json"
