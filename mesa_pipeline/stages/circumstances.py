"""What outcomes depend on beside the data: kept with a champion, to say later what is not as it was."""

from collections.abc import Mapping
from typing import Any

from mesa_pipeline import __version__
from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.evaluation.nights import Changes
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import open_reading, roles_played
from mesa_pipeline.stages.report_models import makers
from mesa_pipeline.stages.storage import EpisodeEntry

Episodes = Mapping[str, tuple[str, str]]
"""Trajectory and question fingerprints of episodes, by id."""


def circumstances(context: StageContext) -> dict[str, str]:
    """Models, versions and every setting that decides what an outcome is, by name. Never an address or a secret."""
    settings, reading = context.settings, open_reading(context.settings, context.layout)
    models = {
        **makers(context),
        "reader": reading.reader.name,
        "reward": reading.reward.name,
        "embedder": settings.llm.embedder_name,
        "tokenizer": reading.counter.name,
        "package version": __version__,
    }
    sections: dict[str, Any] = {
        "evidence": settings.evidence.model_dump(mode="json"),
        "structures": settings.structures.model_dump(mode="json"),
        "stores.bm25": settings.stores.bm25.model_dump(mode="json"),
        "reading": settings.reading.model_dump(mode="json"),
        "previews": settings.previews.model_dump(mode="json"),
        "search.lambda": settings.search.lambda_,
        "search.labels": settings.search.labels,
    }
    sections |= {
        f"llm.roles.{role}": getattr(settings.llm.roles, role).model_dump(mode="json") for role in roles_played(settings)
    }
    return {**models, **{name: value for key, section in sections.items() for name, value in _flat(key, section).items()}}


def changes(then: Episodes, now: Episodes, made_with: Mapping[str, str], made_with_now: Mapping[str, str]) -> Changes:
    """What came, went and changed between two times."""
    differing = sorted(
        name for name in made_with.keys() | made_with_now.keys() if made_with.get(name) != made_with_now.get(name)
    )
    return Changes(
        added=tuple(sorted(now.keys() - then.keys())),
        changed=tuple(sorted(id for id in now.keys() & then.keys() if now[id] != then[id])),
        removed=tuple(sorted(then.keys() - now.keys())),
        made_with=tuple(f"{name}: {made_with.get(name, 'none')} -> {made_with_now.get(name, 'none')}" for name in differing),
    )


def fingerprints(entries: tuple[EpisodeEntry, ...]) -> dict[str, tuple[str, str]]:
    """What tells a changed episode, by its id."""
    return {entry.id: (entry.trajectory, entry.questions) for entry in entries}


def _flat(key: str, value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {name: text for part, inner in value.items() for name, text in _flat(f"{key}.{part}", inner).items()}
    return {key: value if isinstance(value, str) else dump_json(value)}
