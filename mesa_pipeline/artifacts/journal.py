"""Long work that survives a kill."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mesa_pipeline.artifacts.files import Record, parse_object, write_bytes, write_records
from mesa_pipeline.artifacts.fingerprints import dump_json
from mesa_pipeline.errors import ArtifactError


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
            record = parse_object(line) if line.endswith(b"\n") else None
            if record is None or (number == 0 and record != self._header):
                break
            if number:
                self.records.append(record)
            valid_bytes += len(line)
        return valid_bytes
