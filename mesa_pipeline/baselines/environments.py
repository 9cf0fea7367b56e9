"""Environments of their own for packages that cannot share ours: what is in them, making them, finding them."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.errors import ArtifactError, MissingDependency, WorkFailed

WORKERS = Path(__file__).parent / "workers"
MADE = ".made"


@dataclass(frozen=True)
class WorkerEnvironment:
    """A virtual environment with one pinned package in it.

    Attributes:
        name: Of the baseline, its requirements and its worker.
        folder: Where environments lie.
    """

    name: str
    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter.

        Raises:
            MissingDependency: It was not made yet, or from other requirements.
        """
        if not self.is_made:
            raise MissingDependency(
                f"the baseline {self.name} runs in an environment of its own; make it with `mesa baselines install {self.name}`"
            )
        return self._interpreter

    @property
    def script(self) -> Path:
        """What runs in it."""
        return WORKERS / f"{self.name}_worker.py"

    @property
    def requirements(self) -> Path:
        """What is installed in it, pinned."""
        return WORKERS / f"{self.name}.txt"

    @property
    def is_made(self) -> bool:
        """Whether it is there, whole, as the requirements are now."""
        made = self._root / MADE
        return self._interpreter.exists() and made.is_file() and made.read_text(encoding="ascii") == self._key

    def make(self, say: Callable[[str], None]) -> None:
        """Make it anew, unless it is there; while another process makes it, wait.

        Args:
            say: Told, in a line, what is being done.

        Raises:
            ArtifactError: The folder cannot be written.
            WorkFailed: The packages could not be installed; holds the installer's last words.
        """
        with self._alone(say) as lock:
            if self.is_made:
                say(f"{self.name}: {self._root} is there already")
                return
            shutil.rmtree(self._root, ignore_errors=True)
            say(f"{self.name}: making {self._root}")
            _run([sys.executable, "-m", "venv", str(self._root)], lock)
            say(f"{self.name}: installing {self.requirements.name}")
            _run([*_installer(self._interpreter), "--requirement", str(self.requirements)], lock)
            (self._root / MADE).write_text(self._key, encoding="ascii")

    @contextmanager
    def _alone(self, say: Callable[[str], None]) -> Iterator[int]:
        """Hold the folder; yields the lock's descriptor, for installers to hold too: they may outlive this process."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            opened = (self.folder / f".lock-{self.name}").open("w")
        except OSError as error:
            raise ArtifactError(f"cannot write {self.folder}: {error.strerror}; choose another --workspace") from error
        with opened as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                say(f"{self.name}: waiting for another process that makes {self._root}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock.fileno()

    @property
    def _interpreter(self) -> Path:
        return self._root / "bin" / "python"

    @property
    def _root(self) -> Path:
        return (self.folder / self.name).absolute()

    @property
    def _key(self) -> str:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return fingerprint("environment", version, self.requirements.read_text(encoding="utf-8"))


def _installer(python: Path) -> list[str]:
    """uv where it is there, which takes seconds; else pip."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv:
        return [uv, "pip", "install", "--quiet", "--python", str(python)]
    return [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def _run(command: list[str], lock: int) -> None:
    quiet = {**os.environ, "PIP_NO_INPUT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet, pass_fds=[lock])
    if done.returncode:
        raise WorkFailed(f"`{' '.join(command[:3])} ...` failed:\n{done.stderr.strip()[-2000:]}")
