"""What building and retrieving have in common: one artifact an episode, made where it is missing or outdated."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mesa_pipeline.artifacts import exclusive
from mesa_pipeline.errors import MesaError
from mesa_pipeline.llm.metering import Cost
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.parallel import run_units, worker_count
from mesa_pipeline.stages.storage import EpisodeEntry, Manifest, remove_others
from mesa_pipeline.stages.timings import append_cost
from mesa_pipeline.types import Summary


def nothing() -> None:
    """What is to be done where everything lies in the artifacts."""


@dataclass(frozen=True)
class EpisodeWork:
    """How the artifacts of one kind are made.

    Attributes:
        stage: Name of the stage.
        product: What is made of an episode, for progress and failures.
        timing: Name under which that is noted.
        folders: Where the artifacts lie.
        fingerprint: Names what is made of an episode.
        is_current: Whether an episode's artifact is there and needs no making.
        make: Makes and stores an episode's artifact, in a worker; returns what the work proper took.
        waits: Whether it mostly waits for an endpoint.
        clear: Removes what is kept elsewhere of artifacts that are there no more.
    """

    stage: str
    product: str
    timing: str
    folders: tuple[Path, ...]
    fingerprint: Callable[[EpisodeEntry], str]
    is_current: Callable[[EpisodeEntry], bool]
    make: Callable[[EpisodeEntry], Cost]
    waits: bool = False
    clear: Callable[[], None] = nothing


def make_missing(context: StageContext, manifest: Manifest, wanted: Sequence[EpisodeEntry], work: EpisodeWork) -> Summary:
    """Make what is not current; one failure is listed and the others go on. Artifacts of vanished episodes are removed."""
    started = time.perf_counter()
    settings = context.settings
    failed: list[str] = []
    with exclusive(context.layout, work.timing):
        stale = [entry for entry in wanted if not work.is_current(entry)]  # once nobody else can make them
        parallel = settings.llm.chat.max_concurrency if work.waits else worker_count(settings.run.workers)
        workers = min(parallel, len(stale))
        context.progress(f"making {work.product}", 0, len(stale))
        for done, result in enumerate(run_units(work.make, stale, workers, threads=work.waits), start=1):
            if result.value is not None:
                append_cost(context.layout, work.timing, result.unit.key, work.fingerprint(result.unit), result.value)
            else:
                failed.append(f"{work.product} of episode {result.unit.id!r}: {result.error}")
            context.progress(f"making {work.product}", done, len(stale))
        for folder in work.folders:
            remove_others(folder, manifest)
        left = _cleared(work)
    made, kept = len(stale) - len(failed), len(wanted) - len(stale)
    return Summary(work.stage, made, kept, time.perf_counter() - started, (*failed, *left))


def _cleared(work: EpisodeWork) -> list[str]:
    """Why something is left of artifacts that are there no more, if it is: the next call tries again."""
    try:
        work.clear()
    except MesaError as error:
        return [f"{work.product} of former episodes is not removed everywhere: {error}"]
    return []
