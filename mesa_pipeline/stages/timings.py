"""How long each unit took. Kept apart from the artifacts themselves, whose bytes depend on their inputs alone."""

import json

from mesa_pipeline.artifacts import Layout, dump_json


def append_timing(layout: Layout, stage: str, key: str, seconds: float) -> None:
    """Note the seconds one unit took; a later note for the same key replaces it."""
    path = layout.timings(stage)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="ascii") as file:
        file.write(dump_json({"key": key, "seconds": round(seconds, 6)}) + "\n")


def read_timings(layout: Layout, stage: str) -> dict[str, float]:
    """Seconds by key; empty where nothing was noted. A line cut short by a kill is passed over."""
    try:
        lines = layout.timings(stage).read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return {}
    seconds: dict[str, float] = {}
    for line in lines:
        try:
            note = json.loads(line)
        except ValueError:
            continue
        seconds[note["key"]] = note["seconds"]
    return seconds
