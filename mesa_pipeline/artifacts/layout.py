"""Where artifacts lie, and who may write them."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mesa_pipeline.errors import ArtifactError, WorkspaceBusy

REPLIES = Path("llm", "replies.sqlite")
VECTORS = Path("llm", "vectors.sqlite")
LEDGER = Path("llm", "ledger.sqlite")
"""Of language models, in the workspace: all datasets share them."""


@dataclass(frozen=True)
class Layout:
    """Where the artifacts of one dataset lie inside a workspace.

    Attributes:
        workspace: The folder of all artifacts.
        dataset: Names the dataset's folder in it.
        ablation: Whose policies and tests are meant, ``None`` for those of the settings as they are.
    """

    workspace: Path
    dataset: str
    ablation: str | None = None

    @property
    def root(self) -> Path:
        return self.workspace / checked_name(self.dataset)

    @property
    def manifest(self) -> Path:
        return self.root / "episodes" / "manifest.json"

    def episode(self, key: str) -> Path:
        return self.root / "episodes" / f"{key}.jsonl"

    def memory(self, structure: str, key: str) -> Path:
        return self.root / "memories" / structure / f"{key}.jsonl"

    def evidence(self, structure: str, key: str) -> Path:
        return self.root / "evidence" / structure / f"{key}.jsonl"

    def preview(self, structure: str, key: str) -> Path:
        return self.root / "previews" / structure / f"{key}.jsonl"

    def split(self, seed: int) -> Path:
        return self.root / "splits" / f"seed-{seed}.json"

    def outcomes(self, key: str) -> Path:
        return self.root / "outcomes" / f"{key}.jsonl"

    def policy(self, seed: int) -> Path:
        return self._compared / "policies" / f"seed-{seed}"

    def test(self, seed: int) -> Path:
        return self._compared / "tests" / f"seed-{seed}.json"

    def judgements(self, seed: int) -> Path:
        return self._compared / "judgements" / f"seed-{seed}.json"

    @property
    def report(self) -> Path:
        return self.root / "report"

    def timings(self, stage: str) -> Path:
        return self.root / "timings" / f"{stage}.jsonl"

    @property
    def tracking_database(self) -> Path:
        return self.workspace / "mlflow.db"

    @property
    def tracking_artifacts(self) -> Path:
        return self.workspace / "mlflow-artifacts"

    @property
    def _compared(self) -> Path:
        return self.root / "ablations" / checked_name(self.ablation) if self.ablation else self.root

    @property
    def lock(self) -> Path:
        return self.root / ".lock"


def checked_name(name: str) -> str:
    """The name itself, when it is safe as one path component.

    Raises:
        ArtifactError: It is not.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise ArtifactError(f"dataset name {name!r}: use letters, digits, '_', '-' and '.' only")
    return name


@contextmanager
def exclusive(layout: Layout) -> Iterator[None]:
    """Hold the dataset's workspace for this process; the lock dies with the process.

    Raises:
        WorkspaceBusy: Another process holds it.
        ArtifactError: The workspace cannot be written.
    """
    try:
        layout.root.mkdir(parents=True, exist_ok=True)
        lock = layout.lock.open("a+")
    except OSError as error:
        raise ArtifactError(f"cannot write {layout.root}: {error.strerror}; choose another --workspace") from error
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise WorkspaceBusy(
                f"process {holder} is working on {layout.dataset!r} in {layout.workspace}; "
                "wait for it, stop it, or choose another --workspace"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def is_held(layout: Layout) -> bool:
    """Whether a process, this one included, holds the dataset's workspace."""
    try:
        with layout.lock.open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
