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
        nightly: Whether the challenger's split and policy are meant, which stand apart from those of the report.
    """

    workspace: Path
    dataset: str
    ablation: str | None = None
    nightly: bool = False

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
        return (self._challenge if self.nightly else self.root) / "splits" / f"seed-{seed}.json"

    def outcomes(self, key: str) -> Path:
        return self.root / "outcomes" / f"{key}.jsonl"

    def policy(self, seed: int) -> Path:
        return self._compared / "policies" / f"seed-{seed}"

    def test(self, seed: int) -> Path:
        return self._compared / "tests" / f"seed-{seed}.json"

    def answers(self, baseline: str, key: str) -> Path:
        return self.root / "baselines" / checked_name(baseline) / f"{key}.jsonl"

    def judgements(self, seed: int) -> Path:
        return self._compared / "judgements" / f"seed-{seed}.json"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def champion(self) -> Path:
        return self.root / "champion"

    @property
    def report(self) -> Path:
        return self.root / "report"

    @property
    def comparison(self) -> Path:
        return self.root / "comparison"

    def timings(self, stage: str) -> Path:
        return self.root / "timings" / f"{stage}.jsonl"

    @property
    def traces(self) -> Path:
        return self.root / "traces.jsonl"

    @property
    def tracking_database(self) -> Path:
        return self.workspace / "mlflow.db"

    @property
    def tracking_artifacts(self) -> Path:
        return self.workspace / "mlflow-artifacts"

    @property
    def _challenge(self) -> Path:
        return self.root / "nightly"

    @property
    def _compared(self) -> Path:
        if self.nightly:
            return self._challenge
        return self.root / "ablations" / checked_name(self.ablation) if self.ablation else self.root

    @property
    def lock(self) -> Path:
        return self.root / ".lock"

    def part_lock(self, part: str) -> Path:
        return self.root / f"{self.lock.name}-{checked_name(part)}"


def checked_name(name: str) -> str:
    """The name itself, when it is safe as one path component.

    Raises:
        ArtifactError: It is not.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise ArtifactError(f"dataset name {name!r}: use letters, digits, '_', '-' and '.' only")
    return name


@contextmanager
def exclusive(layout: Layout, part: str | None = None) -> Iterator[None]:
    """Hold the dataset's workspace for this process, or one part of it; the lock dies with the process.

    Who holds a part shares the workspace with holders of other parts, on this machine or another that sees the same files, and
    with nobody who holds it whole.

    Raises:
        WorkspaceBusy: Another process holds it.
        ArtifactError: The workspace cannot be written.
    """
    with _locked(layout, layout.lock, shared=part is not None):
        if part is None:
            yield
        else:
            with _locked(layout, layout.part_lock(part), shared=False):
                yield


@contextmanager
def _locked(layout: Layout, path: Path, shared: bool) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+")
    except OSError as error:
        raise ArtifactError(f"cannot write {path.parent}: {error.strerror}; choose another --workspace") from error
    with lock as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            raise WorkspaceBusy(
                f"process {_holders(layout)} is working on {layout.dataset!r} in {layout.workspace}; "
                "wait for it, stop it, or choose another --workspace"
            ) from error
        file.truncate(0)
        if not shared:
            file.write(str(os.getpid()))
        file.flush()
        yield


def _holders(layout: Layout) -> str:
    locks = [layout.lock, *sorted(layout.root.glob(f"{layout.lock.name}-*"))]
    return ", ".join(filter(None, (path.read_text().strip() for path in locks if _is_locked(path)))) or "unknown"


def is_held(layout: Layout) -> bool:
    """Whether a process, this one included, holds the dataset's workspace or a part of it."""
    return _is_locked(layout.lock)


def _is_locked(path: Path) -> bool:
    try:
        with path.open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
