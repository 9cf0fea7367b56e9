"""``mesa track``: MLflow brought up to date with the workspace."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from mesa_pipeline.api import SHELF
from mesa_pipeline.artifacts import Layout, exclusive
from mesa_pipeline.cli.options import settings_options
from mesa_pipeline.cli.terminal import Terminal, summaries_json
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError, ConfigError, WorkFailed
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.track import datasets_searched, track, track_traces
from mesa_pipeline.tracking import open_tracker
from mesa_pipeline.types import Summary

LOCK = "tracking"
"""Held meanwhile, so that two processes do not record the same search at once."""


@click.command("track")
@click.option("--dataset", "datasets", multiple=True, help="Only this dataset (repeatable); by default all.")
@settings_options
def track_command(datasets: tuple[str, ...], settings: Settings, workspace: Path, terminal: Terminal) -> None:
    """Record in MLflow what the workspace holds and MLflow lacks: searches, tests, champions, traces of questions.

    Searches made with tracking turned off, or recorded elsewhere, are recorded like any other: what is in the workspace is
    the truth, and MLflow shows it. Run again, it records only what is new; stopped, it continues.
    """
    if not settings.tracking.enabled:
        raise ConfigError("tracking is turned off; turn it on with --set tracking.enabled=true")
    known = datasets_searched(workspace)
    if unknown := sorted(set(datasets) - set(known)):
        raise ArtifactError(f"no search of {', '.join(unknown)} in {workspace}; there are {', '.join(known) or 'none'}")
    tracker = open_tracker(settings.tracking, Layout(workspace, SHELF))
    jobs: list[tuple[str, Callable[[StageContext], Summary]]] = [
        *((dataset, partial(track, tracker=tracker)) for dataset in datasets or known),
        *(() if datasets else ((SHELF, partial(track_traces, tracker=tracker)),)),
    ]
    summaries: list[Summary] = []
    with exclusive(Layout(workspace, LOCK)):
        for dataset, job in jobs:
            with terminal.watching() as watchers:
                summary = job(StageContext(Layout(workspace, dataset), settings, progress=watchers.progress))
            terminal.summary(summary)
            summaries.append(summary)
    terminal.result({"stages": summaries_json(summaries)})
    if failed := sum(len(summary.failed) for summary in summaries):
        raise WorkFailed(f"{failed} could not be recorded; everything else is. Run the same command again to retry just those")
