"""``mesa doctor``: is everything here that the system needs, found out by trying it."""

import importlib.metadata
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from mesa_pipeline.artifacts import Layout, write_text
from mesa_pipeline.cli.endpoint_checks import endpoint_checks
from mesa_pipeline.cli.options import settings_options
from mesa_pipeline.cli.store_checks import store_checks
from mesa_pipeline.cli.terminal import Terminal
from mesa_pipeline.config import ENDPOINT, Settings
from mesa_pipeline.errors import MesaError
from mesa_pipeline.policies.sandbox import REMEDY, Sandbox
from mesa_pipeline.services import control, postgres
from mesa_pipeline.stages.models import embedder_opener, open_reading

FREE_BYTES_WANTED = 5 * 10**9
QUESTIONS_TIMED = 1_000
PACKAGES = ("dagster", "dagster-postgres", "mlflow", "sentence-transformers", "torch", "networkx", "pgvector", "elasticsearch")


@dataclass(frozen=True)
class Check:
    """One thing tried. ``needed`` is false for what only some features use; ``otherwise`` is how its absence is shown."""

    name: str
    ok: bool
    detail: str
    needed: bool = True
    otherwise: str = "MISSING"

    @property
    def mark(self) -> str:
        return "ok" if self.ok else self.otherwise


@click.command("doctor")
@settings_options
def doctor_command(settings: Settings, workspace: Path, terminal: Terminal) -> None:
    """Check the installation by using it, and say what is missing and how to get it."""
    attempts: dict[str, Callable[[], str]] = {
        "Python": lambda: sys.version.split()[0],
        "workspace": lambda: _workspace(workspace),
        "token counter": lambda: _token_counter(settings, workspace),
        "embedder": lambda: _embedder(settings, workspace),
        "reader": lambda: open_reading(settings, Layout(workspace, "synthetic")).reader.name,
        **endpoint_checks(settings),
        **store_checks(settings, workspace),
    }
    checks = [_attempt(name, attempt) for name, attempt in attempts.items()]
    checks += [_package(name) for name in PACKAGES]
    checks.append(_policy_sandbox(settings))
    checks += [_postgres(settings), _services(workspace), _data_version_control()]
    for check in checks:
        terminal.say(f"{check.mark:<8} {check.name:<22} {check.detail}", hanging=32)
    broken = [check.name for check in checks if check.needed and not check.ok]
    terminal.result({"ok": not broken, "checks": [asdict(check) for check in checks]})
    if broken:
        raise MesaError(f"not ready: {', '.join(broken)}; `make setup` installs what is pinned in constraints.txt")
    terminal.say("\nReady. `mesa run` shows what the system is for.")


def _attempt(name: str, attempt: Callable[[], str]) -> Check:
    try:
        return Check(name, True, attempt())
    except (MesaError, OSError, ImportError) as error:
        return Check(name, False, str(error))


def _workspace(workspace: Path) -> str:
    workspace.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workspace) as folder:
        write_text(Path(folder) / "probe", "x")
    free = shutil.disk_usage(workspace).free
    short = "" if free >= FREE_BYTES_WANTED else " (little: large datasets need several GB)"
    return f"{workspace.absolute()} can be written, {free / 1e9:.0f} GB free{short}"


def _token_counter(settings: Settings, workspace: Path) -> str:
    counter = open_reading(settings, Layout(workspace, "synthetic")).counter
    return f"{counter.name} counts {counter.count('Step 1 of 2')} tokens in 'Step 1 of 2'"


def _embedder(settings: Settings, workspace: Path) -> str:
    if settings.llm.embedder == ENDPOINT:
        return f"{settings.llm.embedder_name}, at the embeddings endpoint"
    embedder = embedder_opener(settings, workspace)()
    vectors = embedder.embed(["ready?"])
    return f"{embedder.name} gives {vectors.shape[1]} dimensions"


def _package(name: str) -> Check:
    try:
        return Check(name, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Check(name, False, f"install it with `pip install {name}`, pinned as in constraints.txt")


def _policy_sandbox(settings: Settings) -> Check:
    """A weak sandbox runs the built-in templates; only a language model's code needs a strong one."""
    name = "policy sandbox"
    try:
        with Sandbox(settings.policies.sandbox) as sandbox:
            strong = sandbox.tier == "kernel"
            started = time.perf_counter()
            sandbox.select("def select(state, q):\n    return ['S']\n", {}, b"[%s]" % b",".join([b"{}"] * QUESTIONS_TIMED))
            timing = f"selects for {QUESTIONS_TIMED:,} questions in {time.perf_counter() - started:.2f} s"
            detail = f"{sandbox.confinement}; {timing}" + ("" if strong else f"; for a language model's code {REMEDY}")
            return Check(name, strong, detail, needed=False, otherwise="weak")
    except MesaError as error:
        return Check(name, False, str(error))


def _postgres(settings: Settings) -> Check:
    """What `mesa up` keeps runs, candidates and vectors in; SQLite files serve where it cannot be had."""
    name, chosen = "PostgreSQL", settings.services.postgres
    if chosen != "embedded":
        told = f"services.postgres={chosen}" + (
            f", at the address in {settings.services.url_variable}" if chosen == "url" else ""
        )
        return Check(name, True, told)
    reason, found = postgres.unavailable(), postgres.find_installation()
    return Check(name, reason is None, reason or f"embedded, with pgvector, {found}", needed=False, otherwise="absent")


def _services(workspace: Path) -> Check:
    status = control.running(workspace.absolute())
    if status is None:
        return Check("services", True, "none run; `mesa up` starts PostgreSQL, Dagster and MLflow")
    states = ", ".join(f"{service.name} {service.state}" for service in status.services)
    return Check("services", status.ready, states, needed=False, otherwise="partly")


def _data_version_control() -> Check:
    """DVC cannot share Dagster's environment, so it is looked for beside ours and on the path."""
    beside = Path(sys.prefix).parent / ".venv-dvc" / "bin" / "dvc"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("dvc")
    detail = found or "only needed to version data: `make dvc-setup` puts it into its own environment"
    return Check("dvc", found is not None, detail, needed=False, otherwise="absent")
