"""Retrieve: one structure's evidence for every question, once, whatever subsets will read it."""

import time
from functools import partial
from typing import Any

from mesa_pipeline.artifacts import Layout, fingerprint, is_current, write_records
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stages.context import StageContext, structure_of
from mesa_pipeline.stages.per_episode import EpisodeWork, make_missing
from mesa_pipeline.stages.storage import (
    EpisodeEntry,
    evidence_record,
    read_manifest,
    read_memory,
    read_questions,
)
from mesa_pipeline.structures.base import MemoryStructure
from mesa_pipeline.types import Summary


def retrieve(context: StageContext, code: str) -> Summary:
    """Retrieve for every question of every episode whose evidence is not there or was made from something else.

    An episode that fails (its memory was never built, say) is listed and the others go on.

    Raises:
        ConfigError: There is no structure of that code.
        ArtifactError: The episodes are not there yet.
    """
    structure = structure_of(context.settings, code)
    manifest = read_manifest(context.layout)
    asked = [entry for entry in manifest.episodes if entry.question_count]
    work = EpisodeWork(
        stage=f"retrieve {structure.name}",
        product=f"{structure.name} evidence",
        timing=f"retrieve-{code}",
        folder=context.layout.evidence(structure.name, "any").parent,
        is_current=partial(is_retrieved, context.layout, structure),
        make=partial(_retrieve_one, context.layout, context.settings, code),
    )
    return make_missing(context, manifest, asked, work)


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
