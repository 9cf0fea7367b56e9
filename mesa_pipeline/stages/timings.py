"""What each unit took. Kept apart from the artifacts themselves, whose bytes depend on their inputs alone."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from mesa_pipeline.artifacts import Layout, dump_json
from mesa_pipeline.llm.metering import Cost


def append_timing(layout: Layout, stage: str, key: str, cost: Cost) -> None:
    """Note what one unit took; a later note for the same key replaces it."""
    path = layout.timings(stage)
    path.parent.mkdir(parents=True, exist_ok=True)
    noted = {name: value for name, value in asdict(cost).items() if value}
    with path.open("a", encoding="ascii") as file:
        file.write(dump_json({**noted, "key": key, "seconds": round(cost.seconds, 6)}) + "\n")


def read_timings(layout: Layout, stage: str) -> dict[str, float]:
    """Seconds by key; empty where nothing was noted."""
    return {key: cost.seconds for key, cost in read_costs(layout, stage).items()}


def read_costs(layout: Layout, stage: str) -> dict[str, Cost]:
    """What each unit took, by key; empty where nothing was noted. A line cut short by a kill is passed over."""
    return {note.pop("key"): Cost(**note) for note in _notes(layout, stage)}


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
