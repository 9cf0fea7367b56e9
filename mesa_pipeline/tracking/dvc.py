"""Artifacts under data version control: what DVC has recorded of them, and having it record what was made since.

DVC lives in an environment of its own and is called as a program. What it recorded stands in ``dvc.lock``, and the content
behind its hash in its cache, so whether the record is of what lies in the workspace is known without starting it.
"""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import yaml

from mesa_pipeline.artifacts import content_version
from mesa_pipeline.artifacts.versions import counted, version_of
from mesa_pipeline.errors import WorkFailed

FOLDER, LOCK = ".dvc", "dvc.lock"
OWN_PROGRAM = Path(".venv-dvc", "bin", "dvc")
CACHE = Path(FOLDER, "cache", "files", "md5")
FOLDER_SUFFIX = ".dir"
COMMIT_SECONDS = 1800.0


@dataclass(frozen=True)
class DvcRepository:
    """A repository under DVC.

    Attributes:
        root: Its folder.
        program: DVC's own program; ``None`` where there is none, and then nothing is recorded.
    """

    root: Path
    program: Path | None

    @classmethod
    def around(cls, workspace: Path, program: Path | None = None) -> Self | None:
        """The repository that a workspace lies in, ``None`` where it lies in none."""
        for folder in workspace.absolute().parents:
            if (folder / FOLDER).is_dir():
                own = folder / OWN_PROGRAM
                return cls(folder, program or (own if own.exists() else None))
        return None

    def recorded(self, path: Path) -> str | None:
        """The hash that DVC has of exactly what lies at ``path`` now; ``None`` where it tracks it not, or as it was once."""
        md5 = next((out["md5"] for _, out in self._outs(path)), None)
        return md5 if md5 and self._version(md5) == content_version(path) else None

    def record(self, paths: Sequence[Path]) -> None:
        """Have DVC take what lies at each path, where it tracks that, for what its stage makes.

        Only for what was made with the parameters and the inputs that lie beside it: DVC takes the caller's word for that.

        Raises:
            WorkFailed: DVC refused, for instance because it is busy; says what it said.
        """
        changed = [path for path in paths if any(self._outs(path)) and self.recorded(path) is None]
        stages = sorted({stage for path in changed for stage, _ in self._outs(path)})
        if not stages or self.program is None:
            return
        command = [str(self.program), "commit", "--quiet", "--force", *stages]
        try:
            done = subprocess.run(
                command, cwd=self.root, capture_output=True, text=True, timeout=COMMIT_SECONDS, check=False, errors="replace"
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise WorkFailed(f"DVC did not record {', '.join(stages)}: {error}") from error
        if done.returncode:
            raise WorkFailed(f"DVC did not record {', '.join(stages)}: {done.stderr.strip() or done.stdout.strip()}")

    def is_made_from(self, path: Path, source: Path | None) -> bool:
        """Whether the stage that makes ``path`` takes ``source``; ``None`` stands for data that needs no file."""
        made = dict(self._outs(path))
        if source is None or not made:
            return True
        dependencies = {dep["path"] for name in made for dep in self._stages()[name].get("deps", ())}
        return self._place(source) in dependencies

    def _outs(self, path: Path) -> list[tuple[str, dict[str, Any]]]:
        """The stages that make ``path``, with what is recorded of it."""
        place, stages = self._place(path), self._stages()
        return [(name, out) for name, stage in stages.items() for out in stage.get("outs", ()) if out["path"] == place]

    def _stages(self) -> dict[str, Any]:
        """What is recorded of each stage; nothing where nothing was ever reproduced."""
        lock = self.root / LOCK
        try:
            return _read_stages(lock, lock.stat().st_mtime_ns)
        except OSError:
            return {}

    def _place(self, path: Path) -> str:
        absolute = path.absolute()
        return absolute.relative_to(self.root).as_posix() if absolute.is_relative_to(self.root) else str(absolute)

    def _version(self, md5: str) -> str | None:
        """Version of the content that DVC's cache has under a folder's hash, ``None`` where it is not all there."""
        try:
            members = json.loads(self._cached(md5).read_text(encoding="utf-8"))
            return version_of([counted({member["relpath"]: self._cached(member["md5"]) for member in members})])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _cached(self, md5: str) -> Path:
        return self.root / CACHE / md5[:2] / md5[2:]


@lru_cache(maxsize=4)
def _read_stages(lock: Path, changed: int) -> dict[str, Any]:
    """The stages of a ``dvc.lock``, which takes long to parse, since it last changed."""
    try:
        stages = yaml.safe_load(lock.read_text(encoding="utf-8"))["stages"]
    except (KeyError, TypeError, yaml.YAMLError):
        return {}
    return stages if isinstance(stages, dict) else {}
