"""One name for the content of many artifacts, read from what each says of itself: a line of a file, not its gigabytes."""

from collections.abc import Mapping
from pathlib import Path

from mesa_pipeline.artifacts.files import SEAL, read_header
from mesa_pipeline.artifacts.fingerprints import file_sha256, fingerprint

VOUCHED_FOR = {".npz"}
"""The header of the records file beside it holds its hash."""
UNFINISHED = {".partial", ".tmp"}


def content_version(*paths: Path) -> str:
    """Version of files and folders: equal exactly when their content is, wherever they lie.

    An artifact of records is known by its seal, the hash of its content that its first line holds; other files, which are
    small, by their hash. What is not there counts as no file.
    """
    return version_of([files_under(path) for path in paths])


def version_of(groups: list[dict[str, Path]]) -> str:
    """Version of groups of files, each file under a name."""
    return fingerprint("content", [[[name, _file_version(name, group[name])] for name in sorted(group)] for group in groups])


def files_under(path: Path) -> dict[str, Path]:
    """The finished files of a folder that count for its version, by their place in it; a file is its own only member."""
    if not path.is_dir():
        return {path.name: path} if path.is_file() else {}
    found = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
    return counted(found)


def counted(files: Mapping[str, Path]) -> dict[str, Path]:
    """Those files, by name, that count for a version."""
    return {name: file for name, file in files.items() if Path(name).suffix not in VOUCHED_FOR | UNFINISHED}


def _file_version(name: str, path: Path) -> str:
    header = read_header(path) if name.endswith(".jsonl") else None
    return str(header[SEAL]) if header and SEAL in header else file_sha256(path)
