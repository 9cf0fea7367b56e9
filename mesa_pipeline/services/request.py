"""What services are asked for, written down for the owner to read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from mesa_pipeline.artifacts import read_json, write_json, write_sealed_json
from mesa_pipeline.config import Settings, load_settings, resolved
from mesa_pipeline.services.record import services_layout


@dataclass(frozen=True)
class ServicesRequest:
    """Services of one workspace.

    Attributes:
        workspace: Folder of all artifacts, absolute.
        settings: What every run uses, as long as they are up.
        data_paths: File or folder of each dataset that needs one.
        with_mlflow: Whether MLflow's server is among them.
        bound: Whether they end when the process that asks does.
    """

    workspace: Path
    settings: Settings
    data_paths: Mapping[str, Path] = field(default_factory=dict)
    with_mlflow: bool = True
    bound: bool = False

    @property
    def params_file(self) -> Path:
        """Where the settings stand, for each process to read."""
        return services_layout(self.workspace).root / "params.json"

    def write(self) -> None:
        """Write it down, for this user alone: an address in the settings may hold a password."""
        write_json(self.params_file, resolved(self.settings), private=True)
        value = {
            "data_paths": {name: str(path.absolute()) for name, path in self.data_paths.items()},
            "with_mlflow": self.with_mlflow,
            "bound": self.bound,
        }
        write_sealed_json(_file(self.workspace), value)

    @classmethod
    def read(cls, workspace: Path) -> Self:
        """The last one written.

        Raises:
            ArtifactError: There is none.
        """
        value = read_json(_file(workspace), "mesa up")
        paths = {name: Path(path) for name, path in value["data_paths"].items()}
        settings = load_settings(services_layout(workspace).root / "params.json", environment={})
        return cls(workspace, settings, paths, value["with_mlflow"], value["bound"])


def _file(workspace: Path) -> Path:
    return services_layout(workspace).root / "request.json"
