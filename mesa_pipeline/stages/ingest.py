"""Ingest: from a dataset's own files to episodes, one artifact each, and a manifest of them all."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mesa_pipeline import __version__
from mesa_pipeline.artifacts import exclusive, file_sha256, fingerprint, is_current, slug, write_sealed_json
from mesa_pipeline.datasets import DatasetSource, dataset_source
from mesa_pipeline.errors import ArtifactError, DataError
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.storage import (
    Manifest,
    manifest_entry,
    manifest_to_json,
    read_manifest,
    remove_others,
    write_episode,
)
from mesa_pipeline.types import Episode, Summary


def ingest(context: StageContext) -> Summary:
    """Load the dataset and store its episodes; does nothing when neither the source nor its settings changed.

    Episodes that are no longer in the source are removed, unchanged ones left alone.

    Raises:
        DataError: The data is missing or malformed; nothing has been written.
    """
    started = time.perf_counter()
    source = _checked_source(context)
    key = _source_fingerprint(context, source)
    if _is_ingested(context, key):
        manifest = read_manifest(context.layout)
        return _summary(manifest, made=0, started=started)
    context.progress("reading the data", 0, 1)
    loaded = source.load(context.data_path, context.settings.datasets, context.skip_invalid)
    if not loaded.episodes:
        raise DataError(f"{context.data_path or context.dataset}: no episode in it")
    context.progress("reading the data", 1, 1)
    episodes = [with_scorable_questions(episode) for episode in loaded.episodes]
    entries = [manifest_entry(episode, slug(episode.id)) for episode in episodes]
    manifest = Manifest(key, context.dataset, tuple(entries), (*loaded.skipped, *_unscorable(loaded.episodes)))
    made = 0
    with exclusive(context.layout):
        for done, (episode, entry) in enumerate(zip(episodes, entries, strict=True), start=1):
            expected = fingerprint(entry.trajectory, entry.questions, entry.domain, entry.task_type)
            if not is_current(context.layout.episode(entry.key), expected):
                write_episode(context.layout, episode, entry)
                made += 1
            context.progress("storing episodes", done, len(entries))
        remove_others(context.layout.manifest.parent, manifest)
        write_sealed_json(context.layout.manifest, manifest_to_json(manifest))
    return _summary(manifest, made, started)


def with_scorable_questions(episode: Episode) -> Episode:
    """The episode without the questions that have no reference answer: those can be asked, not swept."""
    return replace(episode, questions=tuple(question for question in episode.questions if question.answer is not None))


def _unscorable(episodes: Sequence[Episode]) -> Iterator[str]:
    for episode in episodes:
        left_out = sum(question.answer is None for question in episode.questions)
        if left_out:
            yield f"episode {episode.id!r}: {left_out} questions without a reference answer are left out of the sweep"


def _checked_source(context: StageContext) -> DatasetSource:
    source = dataset_source(context.dataset)
    if context.data_path is None and source.needs_path:
        raise DataError(f"dataset {context.dataset!r} needs --data PATH: {source.description}")
    if context.data_path is not None and not context.data_path.exists():
        raise DataError(f"{context.data_path} does not exist; --data names the file or folder of {context.dataset!r}")
    return source


def _source_fingerprint(context: StageContext, source: DatasetSource) -> str:
    """Of everything that decides what the load gives: the files' content, the loader's settings and its version."""
    section = getattr(context.settings.datasets, source.settings).model_dump() if source.settings else {}
    return fingerprint("ingest", __version__, context.dataset, section, _content(context.data_path), context.skip_invalid)


def _content(path: Path | None) -> list[list[str]]:
    if path is None:
        return []
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return [[file.name, file_sha256(file)] for file in files]


def _is_ingested(context: StageContext, key: str) -> bool:
    try:
        manifest = read_manifest(context.layout)
    except ArtifactError:
        return False
    return manifest.fingerprint == key and all(context.layout.episode(e.key).exists() for e in manifest.episodes)


def _summary(manifest: Manifest, made: int, started: float) -> Summary:
    facts = {
        "episodes": len(manifest.episodes),
        "steps": sum(entry.steps for entry in manifest.episodes),
        "questions": manifest.question_count,
        "left_out": len(manifest.skipped),
    }
    kept = len(manifest.episodes) - made
    return Summary("ingest", made, kept, time.perf_counter() - started, facts=dict(facts))
