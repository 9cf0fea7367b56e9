"""Files that are whole or absent, and that show when they were cut short or edited."""

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from mesa_pipeline import __version__
from mesa_pipeline.artifacts.fingerprints import FINGERPRINT_CHARS, dump_json, fingerprint
from mesa_pipeline.errors import ArtifactError

T = TypeVar("T")
Record = Mapping[str, Any]
SEAL = "seal"
WRITTEN_BY = "package_version"
PRIVATE = 0o600
_PARSING = Lock()
"""NumPy parses headers with ``ast``, which in Python 3.11 fails when threads use it at once (CPython issue 106905)."""


def write_bytes(path: Path, content: bytes, *, private: bool = False) -> None:
    """Replace a file in one step: after a crash either the old content or the new is there, whole.

    Args:
        path: The file.
        content: What it is to hold.
        private: Whether nobody but this user may read it, from its first byte on.

    Raises:
        ArtifactError: The disk is full or the place cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            if private:
                os.fchmod(file.fileno(), PRIVATE)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:  # an interrupt, too, must leave nothing behind
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise ArtifactError(f"cannot write {path}: {error.strerror}; free space or choose another --workspace") from error


def write_text(path: Path, content: str) -> None:
    write_bytes(path, content.encode("utf-8", "backslashreplace"))


def write_json(path: Path, value: Any, *, private: bool = False) -> None:
    """Indented JSON for other programs and people; keys sorted, so equal values give equal bytes."""
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
    write_bytes(path, text.encode("ascii") + b"\n", private=private)


def write_sealed_json(path: Path, value: Record, *, private: bool = False) -> None:
    """``write_json`` of an object that ``read_json`` refuses once it was edited; it says which version wrote it."""
    plain = {**json.loads(dump_json(value)), WRITTEN_BY: __version__}
    write_json(path, {**plain, SEAL: fingerprint(plain)}, private=private)


def read_json(path: Path, made_by: str) -> dict[str, Any]:
    """Read a JSON artifact, without its seal and the version that wrote it; ``made_by`` is the command that makes it.

    Raises:
        ArtifactError: It is not there, damaged, or was edited after it was sealed.
    """
    return read_json_as(dict, path, made_by)


def read_json_as(kind: Callable[[dict[str, Any]], T], path: Path, made_by: str) -> T:
    """Read a JSON artifact as what it holds: what ``kind`` makes of ``read_json``.

    Raises:
        ArtifactError: As ``read_json``; or another version wrote it, and ``kind`` cannot be made from that.
    """
    try:
        value = json.loads(_read_bytes(path, made_by))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error), made_by) from error
    if not isinstance(value, dict) or not value:
        raise _damaged(path, "it holds no object", made_by)
    if value.pop(SEAL, None) != fingerprint(value):
        raise _damaged(path, "its seal does not fit its content", made_by)
    version = value.pop(WRITTEN_BY, None)
    try:
        return kind(value)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        writer = f"mesa-pipeline {version}" if version else "an earlier mesa-pipeline, which did not say its version"
        raise ArtifactError(
            f"{path} was written by {writer}; this one, {__version__}, cannot read it ({error!r}): "
            f"delete it and run `{made_by}`"
        ) from error


def write_records(path: Path, header: Record, records: Iterable[Record]) -> None:
    """Write a whole artifact: the header line (which must hold ``fingerprint``), sealed, then one line a record."""
    unsealed = {name: value for name, value in header.items() if name != SEAL}
    body = "".join(dump_json(record) + "\n" for record in records).encode("ascii")
    sealed = {**unsealed, SEAL: _records_seal(unsealed, body)}
    write_bytes(path, dump_json(sealed).encode("ascii") + b"\n" + body)


def read_header(path: Path) -> dict[str, Any] | None:
    """Header of an artifact, or ``None`` where there is no readable one."""
    try:
        with path.open("rb") as file:
            header = json.loads(file.readline())
    except (OSError, ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) else None


def is_current(path: Path, expected: str) -> bool:
    """Whether the artifact is there, sealed, and was made from exactly what ``expected`` is the fingerprint of."""
    header = read_header(path)
    return header is not None and SEAL in header and header.get("fingerprint") == expected


def read_records(path: Path, made_by: str) -> Iterator[dict[str, Any]]:
    """The records of an artifact, without its header, each parsed when its turn comes.

    Raises:
        ArtifactError: It is not there, or is not what was written; ``made_by`` is the command that makes it.
    """
    first, _, body = _read_bytes(path, made_by).partition(b"\n")
    header = parse_object(first)
    if header is None or "fingerprint" not in header:
        raise _damaged(path, "it has no header", made_by)
    if header.pop(SEAL, None) != _records_seal(header, body):
        raise _damaged(path, "its seal does not fit its content: it was cut short or edited", made_by)
    for line in io.BytesIO(body):
        yield json.loads(line)


def encode_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """NumPy arrays as ``.npz`` bytes; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: arrays[name] for name in sorted(arrays)})
    return buffer.getvalue()


def decode_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Inverse of ``encode_arrays``; refuses pickled objects. Threads may call it."""
    with _PARSING, np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _read_bytes(path: Path, made_by: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is not there yet; make it with `{made_by}`") from error
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}; correct that, or choose another --workspace") from error


def read_verified(path: Path, sha256: str, remedy: str) -> bytes:
    """The bytes of a file whose hash is known.

    Args:
        path: The file.
        sha256: Its hash, in hex.
        remedy: What to do where that is not there.

    Raises:
        ArtifactError: It is missing, or was changed.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing; {remedy}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ArtifactError(f"{path} was changed; {remedy}")
    return content


def parse_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line, or ``None`` where it holds none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _records_seal(header: Record, body: bytes) -> str:
    digest = hashlib.sha256(dump_json(header).encode("ascii"))
    digest.update(body)
    return digest.hexdigest()[:FINGERPRINT_CHARS]


def _damaged(path: Path, reason: str, made_by: str) -> ArtifactError:
    return ArtifactError(f"{path} is damaged ({reason}); delete it and run `{made_by}`")
