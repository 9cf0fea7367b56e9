"""Which services are started for a workspace, with which commands, and what each is told.

Addresses that may hold a password go through the environment: command lines and files are there for others to read.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mesa_pipeline.artifacts import Layout, write_text
from mesa_pipeline.artifacts.services import ORCHESTRATION, POLICIES_SHOWN, TRACKING
from mesa_pipeline.config.variables import PARAMS_VARIABLE, WORKSPACE_VARIABLE, data_variable
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.services.probes import HOST, accepts, answers, beats, free_port
from mesa_pipeline.services.record import services_layout
from mesa_pipeline.services.request import ServicesRequest
from mesa_pipeline.services.service import Program

INSTANCE = "dagster"
CODE_LOCATION = "mesa_pipeline.definitions"
CONFIGURATION = "dagster.yaml"
WORKSPACE_FILE = "workspace.yaml"
DAGSTER_URL_VARIABLE = "MESA_DAGSTER_POSTGRES_URL"
POSTGRES, CODE, WEBSERVER, DAEMON, MLFLOW = "postgres", "code-server", "webserver", "daemon", "mlflow"
TITLES = {WEBSERVER: "Asset graph", MLFLOW: POLICIES_SHOWN}
"""What the addresses show."""
DATABASE_CONNECTION_SECONDS = "1"
"""For which the web server keeps an unused connection: when PostgreSQL has started again, no click is given one that broke."""
STORAGE = f"""
# Added where there is a PostgreSQL. Its address stands in the environment alone.
storage:
  postgres:
    postgres_url:
      env: {DAGSTER_URL_VARIABLE}
"""


class Ports(NamedTuple):
    """Ports of the loopback interface."""

    code_server: int
    webserver: int
    mlflow: int


@dataclass(frozen=True)
class Plan:
    """The programs of a workspace.

    Attributes:
        request: What is asked for.
        databases: Address of each database, by what it is for; none where SQLite files serve.
        after: Services that the databases depend on.
    """

    request: ServicesRequest
    databases: Mapping[str, str]
    after: tuple[str, ...] = ()

    def programs(self) -> list[Program]:
        """The programs in the order they are started, with the files they need; ports are chosen now."""
        settings = self.request.settings.services
        ports = Ports(free_port(), free_port(settings.port), free_port(settings.mlflow_port))
        home = Layout(self.request.workspace, INSTANCE).root
        write_text(home / CONFIGURATION, configuration(with_postgres=ORCHESTRATION in self.databases))
        write_text(home / WORKSPACE_FILE, code_location(ports.code_server))
        mlflow = [self._mlflow(ports)] if self._needs_mlflow else []
        return [self._code_server(ports), self._webserver(ports, home), *mlflow, self._daemon(ports, home)]

    @property
    def environment(self) -> dict[str, str]:
        """What each process finds in its environment beside what is its own."""
        request = self.request
        own = {
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "DO_NOT_TRACK": "true",
            WORKSPACE_VARIABLE: str(request.workspace),
            PARAMS_VARIABLE: str(request.params_file),
            **{data_variable(dataset): str(path) for dataset, path in request.data_paths.items()},
        }
        return {**os.environ, **own}

    @property
    def catch_up_command(self) -> tuple[str, ...]:
        """Records in MLflow what the workspace holds and MLflow lacks; ends by itself."""
        options = ("--workspace", str(self.request.workspace), "--params", str(self.request.params_file))
        return (sys.executable, "-m", "mesa_pipeline.cli", "track", *options)

    def log(self, name: str) -> Path:
        """Where a program's output goes."""
        return services_layout(self.request.workspace).root / "logs" / f"{name}.log"

    @property
    def _dagster_environment(self) -> dict[str, str]:
        home = str(Layout(self.request.workspace, INSTANCE).root)
        url = self.databases.get(ORCHESTRATION)
        return {**self.environment, "DAGSTER_HOME": home, **({DAGSTER_URL_VARIABLE: url} if url else {})}

    def _code_server(self, ports: Ports) -> Program:
        """Has the definitions, and is the parent of runs: these outlive web server and daemon."""
        address = ("--host", HOST, "--port", str(ports.code_server))
        command = (_script("dagster"), "code-server", "start", "-m", CODE_LOCATION, *address)
        ready = accepts(ports.code_server)
        return Program(CODE, command, self._dagster_environment, self.log(CODE), ready, self.after)

    def _webserver(self, ports: Ports, home: Path) -> Program:
        url = f"http://{HOST}:{ports.webserver}"
        address = ("--host", HOST, "--port", str(ports.webserver))
        pool = ("--db-pool-recycle", DATABASE_CONNECTION_SECONDS)
        command = (_script("dagster-webserver"), "--workspace", str(home / WORKSPACE_FILE), *address, *pool)
        ready = answers(f"{url}/server_info")
        return Program(WEBSERVER, command, self._dagster_environment, self.log(WEBSERVER), ready, (*self.after, CODE), url)

    def _daemon(self, ports: Ports, home: Path) -> Program:
        """Starts after the web server, which has created the tables then: both at once would break new SQLite files."""
        command = (_script("dagster-daemon"), "run", "--workspace", str(home / WORKSPACE_FILE))
        ready = beats(f"http://{HOST}:{ports.webserver}")
        return Program(DAEMON, command, self._dagster_environment, self.log(DAEMON), ready, (*self.after, WEBSERVER))

    @property
    def _needs_mlflow(self) -> bool:
        """A tracking server of the settings is there already."""
        return self.request.with_mlflow and self.request.settings.tracking.uri is None

    def _mlflow(self, ports: Ports) -> Program:
        layout = Layout(self.request.workspace, INSTANCE)
        url = f"http://{HOST}:{ports.mlflow}"
        environment = {
            **self.environment,
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_BACKEND_STORE_URI": self.databases.get(TRACKING, f"sqlite:///{layout.tracking_database}"),
            "MLFLOW_DEFAULT_ARTIFACT_ROOT": layout.tracking_artifacts.as_uri(),
        }
        command = (_script("mlflow"), "server", "--host", HOST, "--port", str(ports.mlflow), "--workers", "1")
        return Program(MLFLOW, command, environment, self.log(MLFLOW), answers(f"{url}/health"), self.after, url)


def configuration(with_postgres: bool) -> str:
    """The Dagster instance's configuration: the one in the repository, with PostgreSQL as its storage or SQLite files.

    Raises:
        ArtifactError: It was not installed.
    """
    package = Path(__file__).parent.parent
    for candidate in (package.parent / "dagster_home" / CONFIGURATION, package / CONFIGURATION):
        if candidate.is_file():
            return candidate.read_text(encoding="utf-8") + (STORAGE if with_postgres else "")
    raise ArtifactError(f"{CONFIGURATION} is not beside the package; install mesa-pipeline again")


def code_location(port: int) -> str:
    """Dagster's workspace file: where the code server is."""
    return f"""load_from:
  - grpc_server:
      host: {HOST}
      port: {port}
      location_name: {CODE_LOCATION}
"""


def _script(name: str) -> str:
    return str(Path(sys.executable).parent / name)
