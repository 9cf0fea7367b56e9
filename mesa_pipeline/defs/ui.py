"""Dagster's web server and daemon, and MLflow's, as one thing that starts and stops."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import dagster as dg

from mesa_pipeline.artifacts import Layout, exclusive, write_json, write_text
from mesa_pipeline.config import Settings
from mesa_pipeline.defs.resources import DATA_VARIABLES, PARAMS_VARIABLE, WORKSPACE_VARIABLE
from mesa_pipeline.errors import ArtifactError, WorkFailed

HOST = "127.0.0.1"
DEFAULT_PORT = 3000
MLFLOW_PORT = 5000
INSTANCE = "dagster"
DEFINITIONS = ("-m", "mesa_pipeline.definitions")
CONFIGURATION = "dagster.yaml"
READY_SECONDS = 180.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.3


@dataclass(frozen=True)
class UiOptions:
    """What to show, and where.

    Attributes:
        workspace: Folder of all artifacts; the run history goes to its ``dagster`` folder.
        settings: What every run uses, as long as the UI is up.
        data_paths: File or folder of each dataset that needs one.
        port: Port of the asset graph; a free one is taken where it is in use.
        with_mlflow: Show the candidate policies in MLflow too.
        open_browser: Open the asset graph once it is there.
    """

    workspace: Path
    settings: Settings
    data_paths: Mapping[str, Path] = field(default_factory=dict)
    port: int = DEFAULT_PORT
    with_mlflow: bool = False
    open_browser: bool = False


@dataclass(frozen=True)
class Service:
    """One process.

    Attributes:
        name: What it shows, or what it is.
        command: How to start it.
        url: Its address, if it has one.
        probe: Path that answers once it is ready.
    """

    name: str
    command: Sequence[str]
    url: str | None = None
    probe: str = ""


def serve(options: UiOptions, say: Callable[[str], None]) -> None:
    """Serve on the loopback interface until interrupted or terminated; stops everything it started.

    Args:
        options: What to show.
        say: Told, in a line, what is where.

    Raises:
        WorkspaceBusy: Another process serves the same workspace.
        WorkFailed: A process ended by itself; names its log.
    """
    workspace = options.workspace.absolute()
    home = Layout(workspace, INSTANCE).root
    with exclusive(Layout(workspace, INSTANCE)), _terminated_as_interrupted(), ExitStack() as running:
        environment = prepare_home(home, options)
        create_tables(home)
        say("starting (this takes some seconds) ...")
        services = [*dagster_services(options.port), *(mlflow_services(options) if options.with_mlflow else ())]
        started = [(service, running.enter_context(_process(service, home, environment))) for service in services]
        for service, process in started:
            _wait_until_ready(service, process, home)
            if service.url:
                say(f"{service.name}: {service.url}")
        say("Ctrl-C stops it.")
        if options.open_browser and services[0].url:
            webbrowser.open(services[0].url)
        _watch(started, home)


def prepare_home(home: Path, options: UiOptions) -> dict[str, str]:
    """Write the instance's configuration and return the environment that its processes run in."""
    params = home / "params.json"
    write_text(home / CONFIGURATION, _configuration())
    write_json(params, options.settings.model_dump(mode="json", by_alias=True))
    own = {
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        WORKSPACE_VARIABLE: str(options.workspace.absolute()),
        PARAMS_VARIABLE: str(params),
        **{DATA_VARIABLES[dataset]: str(path.absolute()) for dataset, path in options.data_paths.items()},
    }
    return {**os.environ, **own}


def create_tables(home: Path) -> None:
    """Create the instance's tables where they are missing: two processes started together would both, and break them."""
    dg.DagsterInstance.from_config(str(home)).dispose()


def dagster_services(port: int) -> tuple[Service, ...]:
    """The web server and the daemon that starts queued runs."""
    url = f"http://{HOST}:{_free_port(port)}"
    webserver = (_program("dagster-webserver"), *DEFINITIONS, "--host", HOST, "--port", url.rpartition(":")[2])
    daemon = (_program("dagster-daemon"), "run", *DEFINITIONS)
    return Service("Asset graph", webserver, url, "/server_info"), Service("daemon", daemon)


def mlflow_services(options: UiOptions) -> tuple[Service, ...]:
    """MLflow's server over the workspace's own database; a tracking server of the settings is there already."""
    if options.settings.tracking.uri:
        return ()
    layout = Layout(options.workspace.absolute(), INSTANCE)
    url = f"http://{HOST}:{_free_port(MLFLOW_PORT)}"
    store = (
        "--backend-store-uri",
        f"sqlite:///{layout.tracking_database}",
        "--default-artifact-root",
        layout.tracking_artifacts.as_uri(),
    )
    address = ("--host", HOST, "--port", url.rpartition(":")[2], "--workers", "1")
    command = (_program("mlflow"), "server", *store, *address)
    return (Service("Candidate policies", command, url, "/health"),)


@contextmanager
def _process(service: Service, home: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process with its own group, which ends with it however deep its children are."""
    with _log(home, service).open("wb") as log:
        process = subprocess.Popen(
            service.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(environment), start_new_session=True
        )
    try:
        yield process
    finally:
        _signal_group(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _wait_until_ready(service: Service, process: subprocess.Popen[bytes], home: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while service.url and not _answers(service.url + service.probe):
        _require_alive(service, process, home)
        if time.monotonic() > deadline:
            raise WorkFailed(f"{service.name} did not answer within {READY_SECONDS:.0f} s; see {_log(home, service)}")
        time.sleep(POLL_SECONDS)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _watch(started: Sequence[tuple[Service, subprocess.Popen[bytes]]], home: Path) -> None:
    while True:
        for service, process in started:
            _require_alive(service, process, home)
        time.sleep(POLL_SECONDS)


def _require_alive(service: Service, process: subprocess.Popen[bytes], home: Path) -> None:
    if process.poll() is not None:
        raise WorkFailed(f"{service.name} ended by itself with exit code {process.returncode}; see {_log(home, service)}")


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Unwind on SIGTERM as on Ctrl-C, so that what was started is stopped."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted))
        except OSError:
            probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _program(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def _log(home: Path, service: Service) -> Path:
    return home / f"{service.name.lower().replace(' ', '-')}.log"


def _configuration() -> str:
    package = Path(__file__).parent.parent
    for candidate in (package.parent / "dagster_home" / CONFIGURATION, package / CONFIGURATION):
        if candidate.is_file():
            return candidate.read_text(encoding="utf-8")
    raise ArtifactError(f"{CONFIGURATION} is not beside the package; install mesa-pipeline again")
