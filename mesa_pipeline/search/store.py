"""The folder of one search: its event log and, each under the hash of its content, the sources, states and choices it names.

::

    events.jsonl               what happened, in order
    policies/<sha>.py          sources
    states/<sha>.json          what their fit learnt
    choices/<sha>.json         masks chosen on train and validation questions
    exchanges/<id>.json        what was said to a language model, and its replies

A file is written before the event that names it, so an event never points at nothing. Everything is plain text for people and
programs to read.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mesa_pipeline.artifacts import dump_json, read_verified, write_bytes, write_json
from mesa_pipeline.search.events import Event, EventLog

PROPOSED, EVALUATED, REJECTED = "proposed", "evaluated", "rejected"


@dataclass(frozen=True)
class Choices:
    """Masks a policy chose: integer arrays of shape ``(n_train,)`` and ``(n_validation,)``, in the order of the tables."""

    train: np.ndarray
    validation: np.ndarray


class SearchStore:
    """Reads and writes one search's folder.

    Raises:
        ArtifactError: The log in it is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events = EventLog(folder / "events.jsonl")

    def of(self, kind: str) -> list[Event]:
        """The events of a kind, in order."""
        return [event for event in self.events if event["event"] == kind]

    def find(self, kind: str, candidate: str) -> Event | None:
        """The event of a kind on a candidate, if it happened."""
        return next((event for event in self.of(kind) if event["id"] == candidate), None)

    def spent(self, iterations: int) -> dict[str, int]:
        """What the proposals of the first iterations cost, by what was counted, such as ``prompt_tokens``."""
        total: Counter[str] = Counter()
        for event in self.of(PROPOSED):
            if event["iteration"] <= iterations:
                total.update(event["spent"])
        return dict(total)

    def put_source(self, source: str) -> str:
        """Keep a source; returns its hash."""
        return self._put("policies", ".py", source.encode("utf-8", "surrogatepass"))

    def source(self, sha: str) -> str:
        return self._get("policies", ".py", sha).decode("utf-8", "surrogatepass")

    def put_state(self, state: Any) -> str:
        """Keep a fitted state; returns its hash."""
        return self._put("states", ".json", dump_json(state).encode("ascii"))

    def state(self, sha: str) -> Any:
        return json.loads(self._get("states", ".json", sha))

    def put_choices(self, choices: Choices) -> str:
        """Keep choices; returns their hash, equal for policies that behave alike."""
        value = {"train": choices.train.tolist(), "validation": choices.validation.tolist()}
        return self._put("choices", ".json", dump_json(value).encode("ascii"))

    def choices(self, sha: str) -> Choices:
        value = json.loads(self._get("choices", ".json", sha))
        return Choices(np.array(value["train"], dtype=np.int64), np.array(value["validation"], dtype=np.int64))

    def put_exchange(self, candidate: str, exchange: Sequence[Mapping[str, str]]) -> None:
        """Keep what was said for a candidate."""
        write_json(self.folder / "exchanges" / f"{candidate}.json", [dict(message) for message in exchange])

    def _put(self, kind: str, suffix: str, content: bytes) -> str:
        sha = hashlib.sha256(content).hexdigest()
        path = self.folder / kind / f"{sha}{suffix}"
        if not path.exists():
            write_bytes(path, content)
        return sha

    def _get(self, kind: str, suffix: str, sha: str) -> bytes:
        return read_verified(self.folder / kind / f"{sha}{suffix}", sha, f"delete {self.folder} to search anew")
