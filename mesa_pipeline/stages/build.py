"""Build: from episodes to the memories of one structure (paper, Eq. 1)."""

import time
from functools import partial
from typing import Any

from mesa_pipeline.artifacts import Layout, exclusive, is_current
from mesa_pipeline.config import Settings
from mesa_pipeline.stages.context import StageContext, structure_of
from mesa_pipeline.stages.parallel import run_units, worker_count
from mesa_pipeline.stages.storage import EpisodeEntry, read_episode, read_manifest, remove_others, write_memory
from mesa_pipeline.stages.timings import append_timing
from mesa_pipeline.structures.base import MemoryStructure
from mesa_pipeline.types import Summary


def build(context: StageContext, code: str) -> Summary:
    """Build the memory of every episode that has none, or one made from something else.

    An episode whose build fails is listed and the others go on; the next call tries it again.

    Raises:
        ConfigError: There is no structure of that code.
        ArtifactError: The episodes are not there yet.
    """
    started = time.perf_counter()
    structure = structure_of(context.settings, code)
    manifest = read_manifest(context.layout)
    stale = [entry for entry in manifest.episodes if not is_built(context.layout, structure, entry)]
    failed: list[str] = []
    description = f"building {structure.name} memories"
    work = partial(_build_one, context.layout, context.settings, code)
    workers = worker_count(context.settings.run.workers)
    with exclusive(context.layout):
        context.progress(description, 0, len(stale))
        for done, result in enumerate(run_units(work, stale, min(workers, len(stale))), start=1):
            if result.error is None:
                append_timing(context.layout, f"build-{code}", result.unit.key, result.value or 0.0)
            else:
                failed.append(f"{structure.name} memory of episode {result.unit.id!r}: {result.error}")
            context.progress(description, done, len(stale))
        remove_others(context.layout.memory(structure.name, "any").parent, manifest)
    kept = len(manifest.episodes) - len(stale)
    made = len(stale) - len(failed)
    return Summary(f"build {structure.name}", made, kept, time.perf_counter() - started, tuple(failed))


def is_built(layout: Layout, structure: MemoryStructure[Any], entry: EpisodeEntry) -> bool:
    """Whether the episode's memory is there and current."""
    return is_current(layout.memory(structure.name, entry.key), structure.memory_fingerprint(entry.trajectory))


def _build_one(layout: Layout, settings: Settings, code: str, entry: EpisodeEntry) -> float:
    """Build and store one memory; returns the seconds the builder itself took."""
    structure = structure_of(settings, code)
    trajectory = read_episode(layout, entry.key).trajectory
    started = time.perf_counter()
    memory = structure.build(trajectory)
    seconds = time.perf_counter() - started
    header = {"fingerprint": structure.memory_fingerprint(entry.trajectory), "episode_id": entry.id}
    write_memory(layout, structure, entry.key, memory, header)
    return seconds
