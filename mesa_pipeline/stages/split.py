"""Split: which episodes train, validate and test a policy, for one seed."""

import logging
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mesa_pipeline.artifacts import exclusive, fingerprint, read_json, read_json_as, write_sealed_json
from mesa_pipeline.datasets.splits import PARTS, EpisodeInfo, Split, extend_split, split_episodes
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.storage import EpisodeEntry, Manifest, read_manifest
from mesa_pipeline.types import Summary

GONE = "gone"
"""Of a growing split: the parts of episodes that are no longer there."""
logger = logging.getLogger(__name__)


def split(context: StageContext, seed: int) -> Summary:
    """Draw the split of one seed; episodes without questions take no part.

    Raises:
        DataError: There are too few episodes with questions.
        ArtifactError: The episodes are not there yet.
    """
    started = time.perf_counter()
    manifest = read_manifest(context.layout)
    path = context.layout.split(seed)
    key = split_fingerprint(context, manifest, seed)
    is_kept = _stored_fingerprint(context, seed) == key
    if not is_kept:
        drawn = split_episodes(_infos(manifest), seed, context.settings.splits.ratio)
        with exclusive(context.layout):
            write_sealed_json(path, {"fingerprint": key, **asdict(drawn)})
        for line in drawn.warnings:
            logger.warning("split seed %d: %s", seed, line)
    drawn = read_split(context, seed)
    facts: dict[str, object] = {"train": len(drawn.train), "val": len(drawn.val), "test": len(drawn.test)}
    if drawn.warnings:
        facts["warnings"] = len(drawn.warnings)
    return Summary(f"split seed {seed}", int(not is_kept), int(is_kept), time.perf_counter() - started, facts=facts)


def grow_split(context: StageContext, seed: int) -> Summary:
    """Bring a split up to date with episodes that came and went, without moving any: the one that challengers are searched on.

    An episode that is gone keeps its part, for the case that it returns.

    Raises:
        DataError: There are too few episodes with questions.
        ArtifactError: The episodes are not there yet, or the split is damaged.
    """
    started = time.perf_counter()
    manifest, path = read_manifest(context.layout), context.layout.split(seed)
    key = split_fingerprint(context, manifest, seed)
    is_kept = _stored_fingerprint(context, seed) == key
    if not is_kept:
        assigned = _assigned(path)
        infos = _infos(manifest)
        drawn = extend_split(assigned, infos, seed, context.settings.splits.ratio)
        gone = {id: part for id, part in assigned.items() if id not in {info.id for info in infos}}
        with exclusive(context.layout):
            write_sealed_json(path, {"fingerprint": key, **asdict(drawn), GONE: gone})
    grown = read_split(context, seed)
    facts: dict[str, object] = {part: len(getattr(grown, part)) for part in PARTS}
    return Summary(f"growing split {seed}", int(not is_kept), int(is_kept), time.perf_counter() - started, facts=facts)


def _assigned(path: Path) -> dict[str, str]:
    """Part of every episode that was ever split, by id."""
    if not path.exists():
        return {}

    def assigned(stored: Mapping[str, Any]) -> dict[str, str]:
        return {**stored.get(GONE, {}), **{id: part for part in PARTS for id in stored[part]}}

    return read_json_as(assigned, path, "mesa nightly")


def split_fingerprint(context: StageContext, manifest: Manifest, seed: int) -> str:
    """Key of a split: the episodes with their labels, the ratio and the seed."""
    infos = [asdict(info) for info in _infos(manifest)]
    return fingerprint("split", infos, list(context.settings.splits.ratio), seed)


def read_split(context: StageContext, seed: int) -> Split:
    """The split of one seed.

    Raises:
        ArtifactError: It has not been drawn yet, or for other episodes than there are now.
    """
    command = f"mesa split --seed {seed}"
    path, key = context.layout.split(seed), split_fingerprint(context, read_manifest(context.layout), seed)
    if read_json(path, command).get("fingerprint") != key:
        raise ArtifactError(f"{path} was drawn for other episodes or settings; run `{command}`")

    def drawn(stored: Mapping[str, Any]) -> Split:
        return Split(seed, **{name: tuple(stored[name]) for name in (*PARTS, "warnings")})

    return read_json_as(drawn, path, command)


def _stored_fingerprint(context: StageContext, seed: int) -> str | None:
    try:
        return read_json(context.layout.split(seed), "mesa split").get("fingerprint")
    except ArtifactError:
        return None


def _infos(manifest: Manifest) -> list[EpisodeInfo]:
    return [_info(entry) for entry in manifest.episodes if entry.question_count]


def _info(entry: EpisodeEntry) -> EpisodeInfo:
    return EpisodeInfo(entry.id, entry.domain, entry.task_type, entry.qa_types)
