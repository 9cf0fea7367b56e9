"""Publish: the copy of built memories that a server is searched for, where the settings ask for one."""

import time
from functools import partial

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import Settings
from mesa_pipeline.llm.metering import Cost
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.per_episode import EpisodeWork, make_missing
from mesa_pipeline.stages.storage import EpisodeEntry, Manifest, place_of, read_memory
from mesa_pipeline.stages.systems import system_of
from mesa_pipeline.types import Summary


def publish(context: StageContext, manifest: Manifest, code: str) -> Summary | None:
    """Put every current memory that the server lacks there, and delete those of vanished episodes; ``None`` without a server.

    Raises:
        MissingDependency: The server cannot be reached.
    """
    layout, settings = context.layout, context.settings
    structure = system_of(settings, layout, code)
    store = structure.store
    if store is None:
        return None
    work = EpisodeWork(
        stage=f"publish {structure.name}",
        product=f"{structure.name} index in {store.name}",
        timing=f"publish-{code}",
        folders=(),
        fingerprint=lambda entry: structure.memory_fingerprint(entry.trajectory),
        is_current=lambda entry: not entry.steps or store.holds(place_of(layout, structure, entry)),
        make=partial(_publish_one, layout, settings, code),
        waits=True,
    )
    summary = make_missing(context, manifest, manifest.episodes, work)
    store.keep_only(layout.dataset, structure.name, [entry.key for entry in manifest.episodes])
    return summary


def _publish_one(layout: Layout, settings: Settings, code: str, entry: EpisodeEntry) -> Cost:
    """Publish one memory; returns the seconds that the server took."""
    structure = system_of(settings, layout, code)
    memory = read_memory(layout, structure, entry.key)
    started = time.perf_counter()
    structure.publish(memory, place_of(layout, structure, entry))
    return Cost(time.perf_counter() - started)
