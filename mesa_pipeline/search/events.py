"""The log of a search: events are appended, each vouching for the one before, and everything else is folded from them.

A line is ``{"seq", "previous", "event", ...}``; ``previous`` is the SHA-256 of the line before, so one changed, lost or put in
afterwards is noticed. A torn last line, which a kill leaves, is dropped.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.artifacts.files import parse_object
from mesa_pipeline.errors import ArtifactError

Event = Mapping[str, Any]
BEGINNING = "0" * 64


class EventLog:
    """Append-only events in a file.

    Args:
        path: The file; made with its folder when the first event is appended.

    Raises:
        ArtifactError: The file holds something that is not a log, or was changed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events: list[dict[str, Any]] = []
        self._last = BEGINNING
        self._recover()

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def append(self, event: str, data: Mapping[str, Any]) -> None:
        """Add an event; once this returns, not even a power cut loses it.

        Raises:
            ArtifactError: It cannot be written.
        """
        record = {"seq": len(self._events), "previous": self._last, "event": event, **data}
        line = dump_json(record).encode("ascii") + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ArtifactError(
                f"cannot write {self._path}: {error.strerror}; free space, then run the same command again"
            ) from error
        self._remember(record, line)

    def _remember(self, record: dict[str, Any], line: bytes) -> None:
        self._events.append(record)
        self._last = hashlib.sha256(line).hexdigest()

    def _recover(self) -> None:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        lines = content.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            os.truncate(self._path, len(content) - len(lines.pop()))
        for line in lines:
            record = parse_object(line)
            if record is None or record.get("seq") != len(self._events) or record.get("previous") != self._last:
                raise ArtifactError(
                    f"{self._path}: event {len(self._events)} was changed or is damaged; delete the folder to search anew"
                )
            self._remember(record, line)
