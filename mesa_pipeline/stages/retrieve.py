"""Retrieve: one structure's evidence for every question, once, whatever subsets will read it, and the preview of it."""

from functools import partial
from typing import Any

from mesa_pipeline.artifacts import Layout, fingerprint, is_current, write_records
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.llm.metering import Cost, metered
from mesa_pipeline.reading.previews import PREVIEWS_VERSION, preview
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import open_reading, structure_of, waits_for_endpoint
from mesa_pipeline.stages.per_episode import EpisodeWork, make_missing
from mesa_pipeline.stages.storage import (
    EpisodeEntry,
    evidence_record,
    place_of,
    preview_record,
    read_manifest,
    read_memory,
    read_questions,
)
from mesa_pipeline.stages.timings import read_costs
from mesa_pipeline.structures.base import MemorySystem
from mesa_pipeline.types import Summary


def retrieve(context: StageContext, code: str) -> Summary:
    """Retrieve for every question of every episode whose evidence is not there or was made from something else.

    An episode that fails (its memory was never built, say) is listed and the others go on.

    Raises:
        ConfigError: There is no structure of that code.
        ArtifactError: The episodes are not there yet.
    """
    structure = structure_of(context.settings, context.layout.workspace, code)
    manifest = read_manifest(context.layout)
    asked = [entry for entry in manifest.episodes if entry.question_count]
    work = EpisodeWork(
        stage=f"retrieve {structure.name}",
        product=f"{structure.name} evidence",
        timing=_timing(code),
        folders=(
            context.layout.evidence(structure.name, "any").parent,
            context.layout.preview(structure.name, "any").parent,
        ),
        fingerprint=partial(evidence_fingerprint, structure),
        is_current=partial(_is_complete, context, structure),
        make=partial(_retrieve_one, context.layout, context.settings, code),
        waits=waits_for_endpoint(context.settings, "retrieve", code),
    )
    return make_missing(context, manifest, asked, work)


def retrieve_costs(context: StageContext, code: str) -> dict[str, Cost]:
    """What retrieving with the settings from one structure took by the episode's key, where that is noted.

    Raises:
        ConfigError: There is no structure of that code.
        ArtifactError: The episodes are not there yet.
    """
    structure = structure_of(context.settings, context.layout.workspace, code)
    made = {entry.key: evidence_fingerprint(structure, entry) for entry in read_manifest(context.layout).episodes}
    return read_costs(context.layout, _timing(code), made)


def evidence_fingerprint(structure: MemorySystem[Any], entry: EpisodeEntry) -> str:
    """Key of one structure's evidence for an episode's questions."""
    memory = structure.memory_fingerprint(entry.trajectory)
    return fingerprint("evidence", memory, retrieved_by(structure, entry), entry.questions)


def retrieved_by(structure: MemorySystem[Any], entry: EpisodeEntry) -> dict[str, Any]:
    """All that changes what is retrieved from one structure's memory of an episode: JSON-able."""
    return {**structure.retrieve_identity(), **structure.access_identity(entry.steps)}


def is_retrieved(layout: Layout, structure: MemorySystem[Any], entry: EpisodeEntry) -> bool:
    """Whether one structure's evidence for the episode is there and current."""
    return is_current(layout.evidence(structure.name, entry.key), evidence_fingerprint(structure, entry))


def _is_complete(context: StageContext, structure: MemorySystem[Any], entry: EpisodeEntry) -> bool:
    expected = _previews_fingerprint(context.layout, context.settings, structure, entry)
    is_previewed = is_current(context.layout.preview(structure.name, entry.key), expected)
    return is_previewed and is_retrieved(context.layout, structure, entry)


def _previews_fingerprint(layout: Layout, settings: Settings, structure: MemorySystem[Any], entry: EpisodeEntry) -> str:
    counter = open_reading(settings, layout).counter
    evidence = evidence_fingerprint(structure, entry)
    return fingerprint("previews", PREVIEWS_VERSION, evidence, settings.previews.model_dump(), counter.name)


def _retrieve_one(layout: Layout, settings: Settings, code: str, entry: EpisodeEntry) -> Cost:
    """Retrieve and store one episode's evidence; returns what retrieval itself took."""
    structure = structure_of(settings, layout.workspace, code)
    if not is_current(layout.memory(structure.name, entry.key), structure.memory_fingerprint(entry.trajectory)):
        raise ArtifactError(f"its memory is missing or outdated; run `mesa build --structure {code}`")
    memory = structure.served(read_memory(layout, structure, entry.key), place_of(layout, structure, entry))
    questions = read_questions(layout, entry.key)
    with metered() as meter:
        evidence = structure.retrieve_many(memory, [question.text for question in questions])
        cost = meter.cost
    records = [evidence_record(q.id, e) for q, e in zip(questions, evidence, strict=True)]
    path = layout.evidence(structure.name, entry.key)
    write_records(path, {"fingerprint": evidence_fingerprint(structure, entry), "episode_id": entry.id}, records)
    counter = open_reading(settings, layout).counter
    if not structure.previews_evidence:
        evidence = structure.preview_many(memory, [question.text for question in questions])
    glimpses = [preview_record(q.id, preview(e, settings.previews, counter)) for q, e in zip(questions, evidence, strict=True)]
    header = {"fingerprint": _previews_fingerprint(layout, settings, structure, entry), "episode_id": entry.id}
    write_records(layout.preview(structure.name, entry.key), header, glimpses)
    return cost


def _timing(code: str) -> str:
    return f"retrieve-{code}"
