"""What each unit took. Kept apart from the artifacts themselves, whose bytes depend on their inputs alone."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, BinaryIO

from mesa_pipeline.artifacts import Layout, dump_json
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.llm.metering import Cost


def append_cost(layout: Layout, stage: str, key: str, made: str, cost: Cost) -> None:
    """Note what one unit took; a later note on the same making of it replaces it.

    Args:
        layout: Of the dataset.
        stage: What was done.
        key: Names the unit.
        made: Fingerprint of what was made of it: under other settings the same unit takes something else.
        cost: What it took.

    Raises:
        ArtifactError: The disk is full.
    """
    path = layout.timings(stage)
    noted = {name: value for name, value in asdict(cost).items() if value}
    line = dump_json({**noted, "key": key, "made": made, "seconds": round(cost.seconds, 6)}) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            file.write(_line_end(file) + line.encode("ascii"))
    except OSError as error:
        raise ArtifactError(f"cannot write {path}: {error.strerror}; free space, then run the same command again") from error


def read_costs(layout: Layout, stage: str, made: Mapping[str, str]) -> dict[str, Cost]:
    """What units took, by key. A line cut short by a kill is passed over.

    Args:
        layout: Of the dataset.
        stage: What was done.
        made: Fingerprint of what is made of each unit, by key. A unit of which no such making is noted is left out.
    """
    noted: dict[str, Cost] = {}
    for note in _notes(layout, stage):
        key, fingerprint = note.pop("key"), note.pop("made", None)
        if key in made and made[key] == fingerprint:
            noted[key] = Cost(**note)
    return {key: noted[key] for key in made if key in noted}


def _line_end(file: BinaryIO) -> bytes:
    """What ends the last line of a file, where a full disk or a kill cut it short: else it would spoil the next one."""
    length = file.seek(0, os.SEEK_END)
    file.seek(max(length - 1, 0))
    return b"" if file.read(1) in (b"", b"\n") else b"\n"


def _notes(layout: Layout, stage: str) -> Iterator[dict[str, Any]]:
    try:
        lines = layout.timings(stage).read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue
