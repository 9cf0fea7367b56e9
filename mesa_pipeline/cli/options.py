"""Options that the commands share, and what they make of them."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.cli.terminal import Terminal
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.datasets import DATASETS
from mesa_pipeline.search.loop import SearchProgress, unwatched
from mesa_pipeline.stages.context import Progress, StageContext, silent
from mesa_pipeline.tracking import Tracker, open_tracker

DEFAULT_WORKSPACE = Path("workspace")


@dataclass(frozen=True)
class Options:
    """The shared options of one call."""

    workspace: Path
    dataset: str
    data: Path | None
    settings: Settings
    skip_invalid: bool
    terminal: Terminal

    def context(self, progress: Progress = silent, watch_search: Callable[[SearchProgress], None] = unwatched) -> StageContext:
        layout = Layout(self.workspace, self.dataset)
        return StageContext(layout, self.settings, self.data, self.skip_invalid, progress, watch_search)

    def tracker(self) -> Tracker:
        return open_tracker(self.settings.tracking, Layout(self.workspace, self.dataset))


_SETTINGS_OPTIONS = (
    click.option("--params", type=click.Path(path_type=Path), help="Settings file; by default params.yaml."),
    click.option("--profile", help="Which of the settings file's profiles: offline, local-llm, paper, or your own."),
    click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one setting; repeatable."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object for scripts instead of text."),
    click.option(
        "--workspace",
        type=click.Path(path_type=Path, file_okay=False),
        default=DEFAULT_WORKSPACE,
        show_default=True,
        help="Folder where all artifacts go.",
    ),
)
_DATASET_OPTIONS = (
    click.option(
        "--dataset",
        default="synthetic",
        show_default=True,
        help=f"Which dataset: {', '.join(DATASETS)}; or SOURCE.NAME for further data of one of them.",
    ),
    click.option("--data", type=click.Path(path_type=Path), help="The dataset's file or folder; synthetic needs none."),
    click.option(
        "--skip-invalid", is_flag=True, help="Leave out rows that cannot be read, and list them, instead of stopping."
    ),
)


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``settings``, ``workspace`` and ``terminal`` arguments, read from the options every command has."""

    @functools.wraps(command)
    def with_settings(params: Path | None, profile: str | None, overrides: tuple[str, ...], as_json: bool, **rest: Any) -> None:
        command(settings=load_settings(params, overrides, profile=profile), terminal=Terminal(as_json), **rest)

    return _decorated(with_settings, _SETTINGS_OPTIONS)


def pipeline_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a pipeline stage, as one ``Options`` argument."""

    @functools.wraps(command)
    def with_options(**arguments: Any) -> None:
        names = {field.name for field in fields(Options)}
        options = Options(**{name: arguments.pop(name) for name in names})
        command(options, **arguments)

    return settings_options(_decorated(with_options, _DATASET_OPTIONS))


def _decorated(command: Callable[..., None], options: Sequence[Callable[..., Any]]) -> Callable[..., None]:
    for option in reversed(options):
        command = option(command)
    return command
