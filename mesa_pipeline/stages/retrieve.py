"""Retrieve: one structure's evidence for every question, once, whatever subsets will read it."""

import time
from functools import partial
from typing import Any

from mesa_pipeline.artifacts import Layout, exclusive, fingerprint, is_current, write_records
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stages.context import StageContext, structure_of
from mesa_pipeline.stages.parallel import run_units, worker_count
from mesa_pipeline.stages.storage import (
    EpisodeEntry,
    evidence_record,
    read_manifest,
    read_memory,
    read_questions,
    remove_others,
)
from mesa_pipeline.stages.timings import append_timing
from mesa_pipeline.structures.base import MemoryStructure
from mesa_pipeline.types import Summary


def retrieve(context: StageContext, code: str) -> Summary:
    """Retrieve for every question of every episode whose evidence is not there or was made from something else.

    An episode that fails (its memory was never built, say) is listed and the others go on.

    Raises:
        ConfigError: There is no structure of that code.
        ArtifactError: The episodes are not there yet.
    """
    started = time.perf_counter()
    structure = structure_of(context.settings, code)
    manifest = read_manifest(context.layout)
    asked = [entry for entry in manifest.episodes if entry.question_count]
    stale = [entry for entry in asked if not is_retrieved(context.layout, structure, entry)]
    failed: list[str] = []
    description = f"retrieving from {structure.name} memories"
    work = partial(_retrieve_one, context.layout, context.settings, code)
    workers = worker_count(context.settings.run.workers)
    with exclusive(context.layout):
        context.progress(description, 0, len(stale))
        for done, result in enumerate(run_units(work, stale, min(workers, len(stale))), start=1):
            if result.error is None:
                append_timing(context.layout, f"retrieve-{code}", result.unit.key, result.value or 0.0)
            else:
                failed.append(f"{structure.name} evidence of episode {result.unit.id!r}: {result.error}")
            context.progress(description, done, len(stale))
        remove_others(context.layout.evidence(structure.name, "any").parent, manifest)
    made = len(stale) - len(failed)
    kept = len(asked) - len(stale)
    return Summary(f"retrieve {structure.name}", made, kept, time.perf_counter() - started, tuple(failed))


def evidence_fingerprint(structure: MemoryStructure[Any], entry: EpisodeEntry) -> str:
    """Key of one structure's evidence for an episode's questions."""
    memory = structure.memory_fingerprint(entry.trajectory)
    return fingerprint("evidence", memory, dict(structure.retrieve_identity()), entry.questions)


def is_retrieved(layout: Layout, structure: MemoryStructure[Any], entry: EpisodeEntry) -> bool:
    """Whether one structure's evidence for the episode is there and current."""
    return is_current(layout.evidence(structure.name, entry.key), evidence_fingerprint(structure, entry))


def _retrieve_one(layout: Layout, settings: Settings, code: str, entry: EpisodeEntry) -> float:
    """Retrieve and store one episode's evidence; returns the seconds that retrieval itself took."""
    structure = structure_of(settings, code)
    if not is_current(layout.memory(structure.name, entry.key), structure.memory_fingerprint(entry.trajectory)):
        raise ArtifactError(f"its memory is missing or outdated; run `mesa build --structure {code}`")
    memory = read_memory(layout, structure, entry.key)
    questions = read_questions(layout, entry.key)
    started = time.perf_counter()
    evidence = structure.retrieve_many(memory, [question.text for question in questions])
    seconds = time.perf_counter() - started
    records = [evidence_record(q.id, e) for q, e in zip(questions, evidence, strict=True)]
    path = layout.evidence(structure.name, entry.key)
    write_records(path, {"fingerprint": evidence_fingerprint(structure, entry), "episode_id": entry.id}, records)
    return seconds
