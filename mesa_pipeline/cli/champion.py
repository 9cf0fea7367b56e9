"""``mesa nightly`` and ``mesa champion``: who answers, night after night."""

from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from mesa_pipeline.cli.groups import CommandsInOrder
from mesa_pipeline.cli.options import Options, pipeline_options
from mesa_pipeline.cli.pipeline import Stage, perform
from mesa_pipeline.errors import WorkFailed
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.champion import challenge, promote, re_evaluate, roll_back
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.night_page import PAGE, read_history
from mesa_pipeline.stages.optimize import FROZEN_FOLDER
from mesa_pipeline.stages.reigns import Reign, read_champion
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.sweep import sweep
from mesa_pipeline.subsets import STRUCTURE_CODES

SHOWN_NIGHTS = 14
reason_option = click.option("--reason", default="", help="Why, for the history.")


@click.command("nightly")
@pipeline_options
def nightly_command(options: Options) -> None:
    """Take up new and changed episodes, re-evaluate the champion, and promote a challenger that is shown to be better.

    Rebuilds only what changed, and does nothing when nothing did; killed, the same command continues. Exit code 1 says that
    the champion got significantly worse, or that something failed. For cron, where Dagster does not run:

    \b
    0 3 * * * cd /srv/mesa && mesa nightly --dataset ama_bench --data rows.jsonl
    """
    tracker = options.tracker()
    stages: list[Stage] = [ingest]
    stages += [partial(build, code=code) for code in STRUCTURE_CODES]
    stages += [partial(retrieve, code=code) for code in STRUCTURE_CODES]
    stages += [sweep, partial(challenge, tracker=tracker), partial(re_evaluate, tracker=tracker)]
    perform(options, stages)
    layout = options.context().layout
    if worse := read_history(layout).nights[-1].worse:
        raise WorkFailed(
            f"the champion of {options.dataset!r} is significantly worse {' and '.join(worse)}; "
            f"what changed and what to do: {layout.champion / PAGE}"
        )


@click.group("champion", cls=CommandsInOrder)
def champion_group() -> None:
    """See and change who answers questions about a dataset."""


@champion_group.command("show")
@pipeline_options
def show_command(options: Options) -> None:
    """Who reigns, since when, and what the latest nights said."""
    layout, terminal = options.context().layout, options.terminal
    champion, history = read_champion(layout), read_history(layout)
    terminal.result(
        {
            "champion": {"name": champion.name, "since": champion.since, "folder": champion.folder} if champion else None,
            "nights": [asdict(night) for night in history.nights],
            "handovers": [asdict(handover) for handover in history.handovers],
        }
    )
    if champion is None:
        terminal.say(f"{options.dataset} has no champion; `mesa nightly` finds one.")
    else:
        terminal.say(f"{champion.name}, champion of {options.dataset} since {champion.since}\n{champion.folder}")
    for night in history.nights[-SHOWN_NIGHTS:]:
        terminal.say(f"{night.at}  {night.contest.decision:<15} {night.verdict}", hanging=4)
    for handover in history.handovers:
        terminal.say(f"{handover.at}  {handover.how:<15} {handover.name} {handover.reason}".rstrip(), hanging=4)


@champion_group.command("promote")
@click.option("--seed", type=int, help="The policy frozen for this split seed.")
@click.option("--policy", type=click.Path(path_type=Path), help="A frozen policy's folder.")
@reason_option
@pipeline_options
def promote_command(options: Options, seed: int | None, policy: Path | None, reason: str) -> None:
    """Put a frozen policy in the champion's place by hand, whatever it is worth: name it with --seed or --policy."""
    if (seed is None) == (policy is None):
        raise click.UsageError("name the policy with either --seed or --policy")
    context = options.context()
    folder = policy if policy is not None else context.layout.policy(seed or 0) / FROZEN_FOLDER
    _say(options, promote(context, folder, options.tracker(), reason))


@champion_group.command("roll-back")
@click.option("--to", "number", type=int, help="Number of the reign; by default the last one with another policy.")
@reason_option
@pipeline_options
def roll_back_command(options: Options, number: int | None, reason: str) -> None:
    """Put an earlier champion back in its place."""
    _say(options, roll_back(options.context(), options.tracker(), number, reason))


def _say(options: Options, reign: Reign) -> None:
    options.terminal.result({"reign": reign.number, "name": reign.name, "since": reign.since, "how": reign.how})
    options.terminal.say(
        f"{reign.name} is champion of {options.dataset} since {reign.since} (reign {reign.number}, {reign.how})"
    )
