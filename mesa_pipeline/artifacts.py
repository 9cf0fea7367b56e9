"""The only module that knows paths and file formats.

Every artifact is a JSON-lines file whose first line is a header with the fingerprint of all that went into it. A reader
compares that one line to tell whether the artifact is current; a writer replaces the file in one step. A seal, the hash of the
artifact's own content, tells whoever reads it whole that it was cut short or edited since. Work that takes long is
first appended to a journal (``<file>.partial``), which survives ``kill -9`` and is continued by the next run.

Text is written as ASCII JSON, so NUL bytes and lone surrogates survive the round trip. Nothing is pickled.
"""

import fcntl
import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mesa_pipeline.errors import ArtifactError, WorkspaceBusy

Record = Mapping[str, Any]
FINGERPRINT_CHARS = 20
SLUG_CHARS = 40
SEAL = "seal"


def dump_json(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, ASCII. Raises ``ValueError`` on NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def fingerprint(*parts: Any) -> str:
    """Hex digest of JSON-able values: equal exactly when the values are."""
    return hashlib.sha256(dump_json(parts).encode("ascii")).hexdigest()[:FINGERPRINT_CHARS]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def slug(identifier: str) -> str:
    """File name for an identifier of any content; distinct identifiers get distinct names, and none is ever a path."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", identifier).strip("-")[:SLUG_CHARS]
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{readable}-{digest}" if readable else digest


@dataclass(frozen=True)
class Layout:
    """Where the artifacts of one dataset lie inside a workspace."""

    workspace: Path
    dataset: str

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

    def split(self, seed: int) -> Path:
        return self.root / "splits" / f"seed-{seed}.json"

    def outcomes(self, key: str) -> Path:
        return self.root / "outcomes" / f"{key}.jsonl"

    def policy(self, seed: int) -> Path:
        return self.root / "policies" / f"seed-{seed}"

    def test(self, seed: int) -> Path:
        return self.root / "tests" / f"seed-{seed}.json"

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


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file in one step: after a crash either the old content or the new is there, whole.

    Raises:
        ArtifactError: The disk is full or the place cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise ArtifactError(f"cannot write {path}: {error.strerror}; free space or choose another --workspace") from error


def write_text(path: Path, content: str) -> None:
    write_bytes(path, content.encode("utf-8", "backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    """Indented JSON for the files people open; keys sorted, so equal values give equal bytes."""
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
    write_bytes(path, text.encode("ascii") + b"\n")


def write_sealed_json(path: Path, value: Record) -> None:
    """``write_json`` of an object that ``read_json`` refuses once it was edited."""
    plain = json.loads(dump_json(value))
    write_json(path, {**plain, SEAL: fingerprint(plain)})


def read_json(path: Path, made_by: str) -> dict[str, Any]:
    """Read a JSON artifact, without its seal; ``made_by`` is the command that makes it.

    Raises:
        ArtifactError: It is not there, damaged, or was edited after it was sealed.
    """
    try:
        value = json.loads(_read_bytes(path, made_by))
    except ValueError as error:
        raise _damaged(path, str(error), made_by) from error
    if not isinstance(value, dict) or not value:
        raise _damaged(path, "it holds no object", made_by)
    if value.pop(SEAL, None) not in (None, fingerprint(value)):
        raise _damaged(path, "it was edited after it was written", made_by)
    return value


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
    except (OSError, ValueError):
        return None
    return header if isinstance(header, dict) else None


def is_current(path: Path, expected: str) -> bool:
    """Whether the artifact is there and was made from exactly what ``expected`` is the fingerprint of."""
    header = read_header(path)
    return header is not None and header.get("fingerprint") == expected


def read_records(path: Path, made_by: str) -> Iterator[dict[str, Any]]:
    """The records of an artifact, without its header, each parsed when its turn comes.

    Raises:
        ArtifactError: It is not there, or is not what was written; ``made_by`` is the command that makes it.
    """
    first, _, body = _read_bytes(path, made_by).partition(b"\n")
    header = _parse_object(first)
    if header is None or "fingerprint" not in header:
        raise _damaged(path, "it has no header", made_by)
    if header.pop(SEAL, None) not in (None, _records_seal(header, body)):
        raise _damaged(path, "it was cut short or edited after it was written", made_by)
    for number, line in enumerate(io.BytesIO(body), start=2):
        record = _parse_object(line)
        if record is None:
            raise _damaged(path, f"line {number} is not a record", made_by)
        yield record


def encode_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """NumPy arrays as ``.npz`` bytes; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: arrays[name] for name in sorted(arrays)})
    return buffer.getvalue()


def decode_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Inverse of ``encode_arrays``; refuses pickled objects."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _read_bytes(path: Path, made_by: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is not there yet; make it with `{made_by}`") from error
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}; correct that, or choose another --workspace") from error


def _parse_object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _records_seal(header: Record, body: bytes) -> str:
    digest = hashlib.sha256(dump_json(header).encode("ascii"))
    digest.update(body)
    return digest.hexdigest()[:FINGERPRINT_CHARS]


def _damaged(path: Path, reason: str, made_by: str) -> ArtifactError:
    return ArtifactError(f"{path} is damaged ({reason}); delete it and run `{made_by}`")


class Journal:
    """An artifact in the making: records are appended one by one and survive a kill.

    ``records`` holds what an earlier run with the same header got done. A torn last line is dropped; a journal with another
    header is started anew. No file stays open between calls.
    """

    def __init__(self, target: Path, header: Record) -> None:
        self._target = target
        self._path = target.with_name(target.name + ".partial")
        self._header = dict(header)
        self.records: list[dict[str, Any]] = []
        target.parent.mkdir(parents=True, exist_ok=True)
        valid_bytes = self._recover()
        if valid_bytes:
            os.truncate(self._path, valid_bytes)
        else:
            write_bytes(self._path, dump_json(self._header).encode("ascii") + b"\n")

    def append(self, records: Sequence[Record]) -> None:
        """Append records and hand them to the operating system, so that only a power cut can lose them.

        Raises:
            ArtifactError: The disk is full.
        """
        lines = "".join(dump_json(record) + "\n" for record in records)
        try:
            with self._path.open("ab") as file:
                file.write(lines.encode("ascii"))
        except OSError as error:
            raise ArtifactError(
                f"cannot write {self._path}: {error.strerror}; free space, then run the same command again"
            ) from error
        self.records.extend(dict(record) for record in records)

    def finish(self, records: Iterable[Record]) -> None:
        """Replace the target with ``records``, in their final order, and remove the journal."""
        write_records(self._target, self._header, records)
        self._path.unlink(missing_ok=True)

    def publish_incomplete(self, records: Iterable[Record]) -> None:
        """Make what there is readable without calling it current, and keep the journal for the next run to continue."""
        incomplete = {**self._header, "fingerprint": f"incomplete:{self._header['fingerprint']}"}
        write_records(self._target, incomplete, records)

    def _recover(self) -> int:
        """Bytes of the journal that are whole; fills ``records`` from them."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return 0
        valid_bytes = 0
        for number, line in enumerate(content.splitlines(keepends=True)):
            record = _parse_object(line) if line.endswith(b"\n") else None
            if record is None or (number == 0 and record != self._header):
                break
            if number:
                self.records.append(record)
            valid_bytes += len(line)
        return valid_bytes


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
