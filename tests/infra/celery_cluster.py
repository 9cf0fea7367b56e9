"""Celery, Redis and PostgreSQL for tests, as real processes of this machine."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import redis

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.services.postgres import EmbeddedPostgres

REPOSITORY = Path(__file__).resolve().parents[2]
PASSWORD = "a-password-of-the-test"
INSTANCE = """
telemetry: {enabled: false}
storage:
  postgres:
    postgres_url: {env: DAGSTER_POSTGRES_URL}
"""


@dataclass
class Cluster:
    """A broker, a database and workers that come and go.

    Attributes:
        folder: Everything lies in it; ``workspace`` in there is the workspace.
        environment: Of every process.
        queue: The broker's database.
        workers: Those started, by name.
    """

    folder: Path
    environment: dict[str, str]
    queue: redis.Redis
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    coordinator: "subprocess.Popen[bytes] | None" = None

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def start_worker(self, name: str) -> None:
        command = [str(REPOSITORY / "infra" / "celery" / "worker.sh"), "--hostname", f"{name}@%h"]
        self.workers[name] = self._spawn(command, name)

    def kill_worker(self, name: str) -> None:
        """``kill -9`` of the worker alone; what it had started must end by itself."""
        os.kill(self.workers[name].pid, signal.SIGKILL)
        self.workers[name].wait()

    def materialise(self, partitions: Sequence[str], assets: Sequence[str]) -> subprocess.Popen[bytes]:
        """A process that executes a run for each partition, all at once, and prints their outcome as JSON."""
        module = "tests.infra.coordinate_runs"
        command = [sys.executable, "-m", module, json.dumps({"partitions": [*partitions], "assets": [*assets]})]
        self.coordinator = self._spawn(command, "coordinator")
        return self.coordinator

    def outcome(self, coordinator: "subprocess.Popen[bytes]", seconds: float) -> dict[str, bool]:
        """Whether the run of each partition succeeded, once all have ended."""
        coordinator.wait(seconds)
        lines = self.log("coordinator").strip().splitlines()
        assert coordinator.returncode == 0, "\n".join(lines[-30:])
        found: dict[str, bool] = json.loads(lines[-1])
        return found

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def holds_a_part(self, worker: str, dataset: str) -> str | None:
        """The part of the data set's workspace that the worker is making at this moment."""
        layout = Layout(self.workspace, dataset)
        for lock in sorted(layout.root.glob(".lock-*")):
            if lock.read_text() == str(self.workers[worker].pid) and held_by(lock, self.workers[worker].pid):
                return lock.name
        return None

    def _spawn(self, command: Sequence[str], name: str) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                command,
                cwd=REPOSITORY,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        for process in filter(None, (*self.workers.values(), self.coordinator)):
            end_group(process)


@contextmanager
def cluster(folder: Path, settings: Mapping[str, str]) -> Iterator[Cluster]:
    """A broker and a database without workers; everything ends with the block.

    Args:
        folder: An empty folder.
        settings: Added to the environment of every process.
    """
    with ExitStack() as running:
        postgres = running.enter_context(EmbeddedPostgres(folder / "postgres"))
        postgres.ensure_database("dagster")
        port = running.enter_context(redis_server(folder))
        home = folder / "home"
        home.mkdir()
        (home / "dagster.yaml").write_text(INSTANCE)
        broker = f"redis://:{PASSWORD}@127.0.0.1:{port}"
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("MESA_", "DAGSTER_"))}
        environment = {
            **plain,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "DAGSTER_HOME": str(home),
            "DAGSTER_POSTGRES_URL": postgres.url("dagster"),
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "MESA_EXECUTOR": "celery",
            "MESA_CELERY_BROKER": f"{broker}/0",
            "MESA_CELERY_BACKEND": f"{broker}/1",
            "MESA_WORKSPACE": str(folder / "workspace"),
            **settings,
        }
        create_tables(environment)
        made = Cluster(folder, environment, redis.Redis.from_url(f"{broker}/0"))
        running.callback(made.queue.close)
        running.callback(made.stop)
        yield made


def create_tables(environment: Mapping[str, str]) -> None:
    """Dagster's, by one process: several that find none and create them at the same time break each other."""
    subprocess.run(["dagster", "instance", "migrate"], env=environment, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def redis_server(folder: Path) -> Iterator[int]:
    """A Redis of this test alone, on the loopback interface, that keeps nothing; gives its port."""
    port = free_port()
    options = {"port": port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "requirepass": PASSWORD, "dir": folder}
    arguments = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    program = shutil.which("redis-server")
    assert program
    with (folder / "redis.log").open("wb") as log:
        server = subprocess.Popen([program, *arguments], stdout=log, stderr=log, start_new_session=True)
    try:
        client = redis.Redis(port=port, password=PASSWORD)
        wait_until(lambda: answers(client), 60, "Redis answers")
        client.close()
        yield port
    finally:
        end_group(server)


def own_data(folder: Path, name: str, episodes: int, steps: int) -> Path:
    """The folder of a data set of one's own with histories that no other one has."""
    source = folder / name
    source.mkdir(parents=True)
    for k in range(episodes):
        told = [
            {"action": f"open box {n}", "observation": f"In box {n} of {name} {k} lies key {n * 7 % 31}."} for n in range(steps)
        ]
        (source / f"{k}.json").write_text(json.dumps({"id": f"{name}-{k}", "task": "Find the keys", "steps": told}))
    return source


def settings_of(sources: Mapping[str, Path]) -> dict[str, str]:
    """The environment in which these are partitions of their own, and each worker does its work alone."""
    paths = {f"MESA_DATA_{name.replace('.', '_').upper()}": str(path) for name, path in sources.items()}
    return {**paths, "MESA_DATASETS__OWN": json.dumps(list(sources)), "MESA_RUN__WORKERS": "1"}


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.exceptions.ConnectionError:
        return False


def wait_until(holds: Callable[[], object], seconds: float, what: str, every: float = 0.05) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"after {seconds:.0f} s still not: {what}"
        time.sleep(every)


def held_by(lock: Path, pid: int) -> bool:
    """Whether that process has the lock now, by the kernel's own list."""
    inode = lock.stat().st_ino
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(row[1] == "FLOCK" and row[4] == str(pid) and row[5].rpartition(":")[2] == str(inode) for row in rows)


def end_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
