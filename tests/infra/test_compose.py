"""The compose file against what it starts: its services hang together, its commands exist, its configuration loads and serves.

Docker itself is not used; where a ``docker-compose`` program is installed, it reads the file as well.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import dagster as dg
import mlflow.cli
import pytest
import yaml
from dagster._cli import create_dagster_cli
from dagster._core.workspace.load import load_workspace_process_context_from_yaml_paths
from dagster._daemon.cli import create_dagster_daemon_cli
from dagster._grpc.client import DagsterGrpcClient
from dagster_webserver.cli import dagster_webserver

from mesa_pipeline.config import load_settings
from mesa_pipeline.services.postgres import EmbeddedPostgres, unavailable
from tests.infra.celery_cluster import end_group, free_port

REPOSITORY = Path(__file__).resolve().parents[2]
COMPOSE = REPOSITORY / "infra" / "compose"
PROGRAMS: Mapping[str, click.Command] = {
    "dagster": create_dagster_cli(),
    "dagster-daemon": create_dagster_daemon_cli(),
    "dagster-webserver": dagster_webserver,
    "mlflow": mlflow.cli.cli,
}
"""Of the image, and of this environment too."""
ENDS = "migrate"
"""The service that does its work and ends."""


@pytest.fixture(scope="module")
def text() -> str:
    return (COMPOSE / "compose.yaml").read_text()


@pytest.fixture(scope="module")
def compose(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


@pytest.fixture(scope="module")
def services(compose: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return dict(compose["services"])


def test_there_is_everything_a_team_needs(services: Mapping[str, Any]):
    assert {"postgres", "elasticsearch", "mlflow", "code", "webserver", "daemon", "redis", "worker", "vllm"} <= set(services)


def test_services_that_others_wait_for_exist_and_say_when_they_are_ready(services: Mapping[str, dict[str, Any]]):
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            ends = services[needed]["restart"] == "no"
            assert how == {"condition": "service_completed_successfully" if ends else "service_healthy"}
            assert ends or "healthcheck" in services[needed], f"{name} would wait for {needed} for ever"
            assert set(services[needed].get("profiles", ())) <= set(service.get("profiles", ())), (
                f"{name} starts without {needed}"
            )


def test_every_volume_is_declared_and_every_mounted_file_is_there(compose: Mapping[str, Any]):
    for service in compose["services"].values():
        for mounted in service.get("volumes", ()):
            source = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", mounted).split(":")[0]
            if not source.startswith("."):
                assert source in compose["volumes"]
            elif source != "./data":
                assert (COMPOSE / source).exists()


def test_nothing_listens_beyond_this_machine(services: Mapping[str, dict[str, Any]]):
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert len(published) >= 4
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert not any("network_mode" in service for service in services.values())


def test_images_are_pinned_and_containers_are_limited(services: Mapping[str, dict[str, Any]]):
    for name, service in services.items():
        version = service["image"].rpartition(":")[2]
        assert ("${MESA_VERSION" in service["image"]) or re.match(r"v?\d+\.\d+\.\d+", version), f"{name} is not pinned"
        assert service["deploy"]["resources"], name
        assert service["restart"] == ("no" if name == ENDS else "unless-stopped")


def test_whatever_uses_the_tables_of_dagster_starts_when_they_are_there(services: Mapping[str, dict[str, Any]]):
    users = {name for name, service in services.items() if "DAGSTER_POSTGRES_URL" in service.get("environment", {})} - {ENDS}
    assert {"code", "webserver", "daemon", "worker"} <= users
    assert all(ENDS in waits_for(services, name) for name in users)


def waits_for(services: Mapping[str, dict[str, Any]], name: str) -> set[str]:
    """All that must be up before a service starts."""
    needed = set(services[name].get("depends_on", {}))
    return needed.union(*(waits_for(services, other) for other in needed))


def test_passwords_have_no_default_and_every_variable_is_explained_or_has_one(text: str):
    example = (COMPOSE / ".env.example").read_text()
    used = dict(re.findall(r"(?<!\$)\$\{(\w+)(:[-?][^}]*)?\}", text))
    offered = dict(re.findall(r"^#?(\w+)=(.*)$", example, re.MULTILINE))
    assert used["POSTGRES_PASSWORD"].startswith(":?")
    assert all(not value for name, value in offered.items() if "PASSWORD" in name or "KEY" in name)
    assert {name for name, default in used.items() if default in {":-", ""} or default.startswith(":?")} <= set(offered)
    assert set(offered) <= set(used)
    assert not re.search(r"(password|secret)\s*[:=]\s*[a-z0-9]+$", text, re.IGNORECASE | re.MULTILINE)


def test_the_settings_in_it_are_settings(services: Mapping[str, dict[str, Any]]):
    environment = {
        name: re.sub(r"\$\{\w+:[-?]([^}]*)\}", r"\1", str(value)) for name, value in services["code"]["environment"].items()
    }
    settings = load_settings(REPOSITORY / "params.yaml", environment=environment, profile="paper")
    assert settings.stores.vectors == "pgvector"
    assert settings.tracking.uri == "http://mlflow:5000"
    assert settings.llm.chat.base_url == "http://vllm:8000/v1"
    assert services["worker"]["environment"] == services["code"]["environment"]


def commands(services: Mapping[str, dict[str, Any]]) -> Iterator[list[str]]:
    for service in services.values():
        for command in (service.get("command", []), service.get("healthcheck", {}).get("test", [])[1:]):
            if command and command[0] in PROGRAMS:
                yield command


def test_every_command_of_ours_has_the_flags_it_is_given(services: Mapping[str, dict[str, Any]]):
    checked = 0
    for program, *arguments in commands(services):
        command = PROGRAMS[program]
        for word in (word for word in arguments if not word.startswith("-")):
            assert isinstance(command, click.Group)
            command = command.commands[word]
        known = {flag for parameter in command.params for flag in parameter.opts}
        assert {word.partition("=")[0] for word in arguments if word.startswith("-")} <= known, f"{program} {arguments}"
        checked += 1
    assert checked >= 6


def test_the_image_is_given_what_its_build_copies_and_no_more():
    dockerfile = (COMPOSE / "Dockerfile").read_text()
    allowed = [line[1:] for line in (COMPOSE / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [
        source
        for line in re.findall(r"^COPY (.*)$", dockerfile, re.MULTILINE)
        for source in line.split()[:-1]
        if not source.startswith("--")
    ]
    for source in copied:
        assert (REPOSITORY / source).exists()
        assert any(path == source or path.startswith(f"{source}/") for path in allowed)
    assert all((REPOSITORY / path).exists() for path in allowed)
    assert "USER mesa" in dockerfile


def test_a_killed_run_is_continued_as_on_one_machine():
    ours, here = (
        yaml.safe_load(path.read_text()) for path in (COMPOSE / "dagster.yaml", REPOSITORY / "dagster_home/dagster.yaml")
    )
    assert ours["run_retries"] == here["run_retries"]
    assert ours["run_monitoring"]["enabled"]


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="no docker-compose program on the PATH")
def test_compose_itself_accepts_the_file_and_refuses_to_start_without_a_password():
    plain = {"PATH": os.environ["PATH"]}
    command = [
        "docker-compose",
        "--file",
        str(COMPOSE / "compose.yaml"),
        "--env-file",
        "/dev/null",
        "--profile",
        "*",
        "config",
        "-q",
    ]
    accepted = subprocess.run(command, env={**plain, "POSTGRES_PASSWORD": "x"}, capture_output=True, text=True, check=False)
    assert accepted.returncode == 0, accepted.stderr
    refused = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "POSTGRES_PASSWORD" in refused.stderr


@pytest.mark.slow
@pytest.mark.skipif(unavailable() is not None, reason=f"PostgreSQL cannot be started here: {unavailable()}")
def test_the_code_server_serves_the_instance_that_its_configuration_describes(
    tmp_path: Path, services: Mapping[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
):
    port = free_port()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_MAX_RUNS", "3")
    configuration = (COMPOSE / "dagster.yaml").read_text().replace("/dagster/logs", str(tmp_path / "logs"))
    (tmp_path / "dagster.yaml").write_text(configuration)
    workspace = tmp_path / "workspace.yaml"
    address = f"host: 127.0.0.1, port: {port}"
    workspace.write_text((COMPOSE / "workspace.yaml").read_text().replace("host: code, port: 4000", address))
    program, *arguments = services["code"]["command"]
    command = [in_environment(program), *("--host=127.0.0.1" if "--host" in word else word for word in arguments)]
    command = [f"--port={port}" if "--port" in word else word for word in command]
    with EmbeddedPostgres(tmp_path / "postgres") as postgres:
        postgres.ensure_database("dagster")
        monkeypatch.setenv("DAGSTER_POSTGRES_URL", postgres.url("dagster"))
        with dg.DagsterInstance.get() as instance:
            assert type(instance.run_storage).__name__ == "PostgresRunStorage"
            assert type(instance.run_launcher) is dg.DefaultRunLauncher
            assert instance.run_coordinator.get_run_queue_config().max_concurrent_runs == 3
            server = subprocess.Popen(command, cwd=REPOSITORY, start_new_session=True, stdout=subprocess.DEVNULL)
            try:
                check = [in_environment("dagster"), *services["code"]["healthcheck"]["test"][2:-1], f"--port={port}"]
                wait_for_success(check, server)
                with load_workspace_process_context_from_yaml_paths(instance, [str(workspace)]) as process_context:
                    names = process_context.create_request_context().code_location_names
                    location = process_context.create_request_context().get_code_location(names[0])
                    assets = next(iter(location.get_repositories().values())).get_asset_node_snaps()
            finally:
                DagsterGrpcClient(port=port, host="127.0.0.1").shutdown_server()
                end_group(server)
    assert names == ["mesa_pipeline.definitions"]
    assert {"raw_trajectories", "test_report"} <= {node.asset_key.to_user_string() for node in assets}


def wait_for_success(command: list[str], server: "subprocess.Popen[bytes]", seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while subprocess.run(command, capture_output=True, check=False).returncode != 0:
        assert server.poll() is None, "the server ended"
        assert time.monotonic() < deadline
        time.sleep(0.5)


def in_environment(program: str) -> str:
    return str(Path(sys.executable).parent / program)
