"""The log of a search: events are appended, each vouching for the one before, and everything else is folded from them.

A line is ``{"seq", "previous", "event", ..., "seal"}``: ``seal`` is the hash of the rest of the line and ``previous`` the seal
of the line before, so one changed, lost or put in afterwards is noticed. A torn last line, which a kill or a full disk leaves,
is no event; the next one takes its place.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mesa_pipeline.artifacts import dump_json, fingerprint
from mesa_pipeline.artifacts.files import SEAL, parse_object
from mesa_pipeline.errors import ArtifactError

Event = Mapping[str, Any]
BEGINNING = ""


class EventLog:
    """Append-only events in a file.

    Args:
        path: The file; made with its folder when the first event is appended.

    Raises:
        ArtifactError: The file holds something that is not a log, or was changed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events: list[Event] = []
        self._last = BEGINNING
        self._size = 0
        self._recover()

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def append(self, event: str, data: Mapping[str, Any]) -> None:
        """Add an event; once this returns, no kill loses it.

        Raises:
            ArtifactError: It cannot be written; the log is as it was.
        """
        record = {"seq": len(self._events), "previous": self._last, "event": event, **data}
        line = dump_json({**record, SEAL: fingerprint(record)}).encode("ascii") + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("r+b" if self._size else "wb") as file:
                file.truncate(self._size)
                file.seek(self._size)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ArtifactError(
                f"cannot write {self._path}: {error.strerror}; free space, then run the same command again"
            ) from error
        self._remember(line)

    def _recover(self) -> None:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        *lines, _torn = content.split(b"\n")
        for line in lines:
            self._remember(line + b"\n")

    def _remember(self, line: bytes) -> None:
        record = parse_object(line) or {}
        seal = record.pop(SEAL, None)
        is_next = record.get("seq") == len(self._events) and record.get("previous") == self._last
        if not is_next or seal != fingerprint(record):
            raise ArtifactError(
                f"{self._path}: event {len(self._events)} was changed or is damaged; delete the folder to search anew"
            )
        self._events.append(record)
        self._last = str(seal)
        self._size += len(line)
