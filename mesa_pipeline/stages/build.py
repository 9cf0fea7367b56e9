"""Build: from episodes to the memories of one structure (paper, Eq. 1)."""

from functools import partial
from typing import Any

from mesa_pipeline.artifacts import Layout, is_current
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.llm.metering import Cost, metered
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.per_episode import EpisodeWork, make_missing
from mesa_pipeline.stages.publish import publish
from mesa_pipeline.stages.storage import EpisodeEntry, Manifest, read_episode, read_manifest, read_memory, write_memory
from mesa_pipeline.stages.systems import build_waits, system_of
from mesa_pipeline.stages.timings import read_costs
from mesa_pipeline.structures.base import MemorySystem
from mesa_pipeline.types import Summary


def build(context: StageContext, code: str) -> Summary:
    """Build the memory of every episode that has none, or one made from something else; ``code`` may be a baseline's.

    An episode whose build fails is listed and the others go on; the next call tries it again. Where the settings name a server
    that searches the memories, their copies are brought up to date too.

    Raises:
        ConfigError: There is no structure of that code.
        ArtifactError: The episodes are not there yet.
        MissingDependency: A server of the settings cannot be reached.
    """
    structure = system_of(context.settings, context.layout, code)
    manifest = read_manifest(context.layout)
    work = EpisodeWork(
        stage=f"build {structure.name}",
        product=f"{structure.name} memory",
        timing=_timing(code),
        folders=(context.layout.memory(structure.name, "any").parent,),
        fingerprint=lambda entry: structure.memory_fingerprint(entry.trajectory),
        is_current=partial(is_built, context.layout, structure),
        make=partial(_build_one, context.layout, context.settings, code),
        waits=build_waits(context.settings, code),
        clear=partial(_clear, context.layout, structure, manifest),
    )
    built = make_missing(context, manifest, manifest.episodes, work)
    published = publish(context, manifest, code)
    return built if published is None else built.with_part(published)


def own_build_costs(context: StageContext, code: str) -> dict[str, Cost]:
    """What building the memories of the settings took by the episode's key, where that is noted; ``code`` may be a baseline's.

    What the memories are built from is not counted.

    Raises:
        ConfigError: There is no structure of that code.
        ArtifactError: The episodes are not there yet.
    """
    structure = system_of(context.settings, context.layout, code)
    entries = read_manifest(context.layout).episodes
    made = {entry.key: structure.memory_fingerprint(entry.trajectory) for entry in entries}
    return read_costs(context.layout, _timing(code), made)


def is_built(layout: Layout, structure: MemorySystem[Any], entry: EpisodeEntry) -> bool:
    """Whether the episode's memory is there and current."""
    return is_current(layout.memory(structure.name, entry.key), structure.memory_fingerprint(entry.trajectory))


def _build_one(layout: Layout, settings: Settings, code: str, entry: EpisodeEntry) -> Cost:
    """Build and store one memory; returns what the builder itself took."""
    structure = system_of(settings, layout, code)
    trajectory = read_episode(layout, entry.key).trajectory
    shared = {part: _shared(layout, settings, part, entry) for part in structure.shares}
    with metered() as meter:
        memory = structure.build_with(trajectory, shared) if shared else structure.build(trajectory)
        cost = meter.cost
    header = {"fingerprint": structure.memory_fingerprint(entry.trajectory), "episode_id": entry.id}
    write_memory(layout, structure, entry.key, memory, header)
    return cost


def _shared(layout: Layout, settings: Settings, code: str, entry: EpisodeEntry) -> Any:
    """The memory that another one is built from."""
    structure = system_of(settings, layout, code)
    if not is_built(layout, structure, entry):
        raise ArtifactError(f"the memory it is built from is missing or outdated; run `mesa build --structure {code}`")
    return read_memory(layout, structure, entry.key)


def _clear(layout: Layout, structure: MemorySystem[Any], manifest: Manifest) -> None:
    """Remove what the structure keeps outside the memories that are there."""
    keys = (entry.key for entry in manifest.episodes if layout.memory(structure.name, entry.key).exists())
    structure.keep_only(read_memory(layout, structure, key) for key in keys)


def _timing(code: str) -> str:
    return f"build-{code}"
