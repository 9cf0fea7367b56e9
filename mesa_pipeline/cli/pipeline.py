"""The commands that make artifacts: ``mesa run`` and each of its stages."""

from collections.abc import Callable, Iterable
from functools import partial

import click

from mesa_pipeline.cli.options import Options, pipeline_options
from mesa_pipeline.cli.terminal import summaries_json
from mesa_pipeline.errors import WorkFailed
from mesa_pipeline.stages.ablate import ablate, find_ablations
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.judge import judge
from mesa_pipeline.stages.optimize import optimize
from mesa_pipeline.stages.report import report
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.split import split
from mesa_pipeline.stages.sweep import sweep
from mesa_pipeline.stages.test import test
from mesa_pipeline.subsets import STRUCTURE_CODES
from mesa_pipeline.types import Summary

Stage = Callable[[StageContext], Summary]
structure_option = click.option(
    "--structure",
    "codes",
    multiple=True,
    type=click.Choice(STRUCTURE_CODES),
    help="Only this structure (repeatable); by default all five.",
)
seed_option = click.option(
    "--seed", "seeds", multiple=True, type=int, help="Only this split seed (repeatable); by default all."
)


@click.command("run")
@pipeline_options
def run_command(options: Options) -> None:
    """Everything, in order: from trajectories to a tested policy and its report.

    Continues where an earlier run stopped, and does nothing that is done already. With no options it runs the synthetic
    dataset, which needs no data, no server and no key.
    """
    seeds = options.settings.splits.seeds
    tracker = options.tracker()
    stages: list[Stage] = [ingest]
    stages += [partial(build, code=code) for code in STRUCTURE_CODES]
    stages += [partial(retrieve, code=code) for code in STRUCTURE_CODES]
    stages += [partial(split, seed=seed) for seed in seeds]
    stages.append(sweep)
    stages += [partial(optimize, seed=seed, tracker=tracker) for seed in seeds]
    stages += [partial(test, seed=seed, tracker=tracker) for seed in seeds]
    stages.append(report)
    perform(options, stages)


@click.command("ingest")
@pipeline_options
def ingest_command(options: Options) -> None:
    """Read a dataset and store its episodes."""
    perform(options, [ingest])


@click.command("build")
@structure_option
@pipeline_options
def build_command(options: Options, codes: tuple[str, ...]) -> None:
    """Build the memories of every episode: summary, temporal store, graph, vectors, raw windows."""
    perform(options, [partial(build, code=code) for code in codes or STRUCTURE_CODES])


@click.command("retrieve")
@structure_option
@pipeline_options
def retrieve_command(options: Options, codes: tuple[str, ...]) -> None:
    """Read each memory once for every question."""
    perform(options, [partial(retrieve, code=code) for code in codes or STRUCTURE_CODES])


@click.command("split")
@seed_option
@pipeline_options
def split_command(options: Options, seeds: tuple[int, ...]) -> None:
    """Divide the episodes into training, validation and test, once for each seed."""
    perform(options, [partial(split, seed=seed) for seed in seeds or options.settings.splits.seeds])


@click.command("sweep")
@pipeline_options
def sweep_command(options: Options) -> None:
    """Answer every question from each of the 31 subsets of structures, and score the answers."""
    perform(options, [sweep])


@click.command("optimize")
@seed_option
@pipeline_options
def optimize_command(options: Options, seeds: tuple[int, ...]) -> None:
    """Search for the policy with the best score minus cost on validation, and freeze it.

    A search that was stopped is continued; a finished one is continued when it is to have more iterations.
    """
    tracker = options.tracker()
    perform(options, [partial(optimize, seed=s, tracker=tracker) for s in seeds or options.settings.splits.seeds])
    if page := tracker.page(options.dataset):
        options.terminal.say(f"Candidates: {page}")


@click.command("test")
@seed_option
@pipeline_options
def test_command(options: Options, seeds: tuple[int, ...]) -> None:
    """Test the frozen policy on the held-out episodes, once."""
    tracker = options.tracker()
    perform(options, [partial(test, seed=s, tracker=tracker) for s in seeds or options.settings.splits.seeds])


@click.command("judge")
@seed_option
@pipeline_options
def judge_command(options: Options, seeds: tuple[int, ...]) -> None:
    """Have further judges score the test answers: accuracy by judge, agreement, majority vote.

    Those of the policy, of reading all five structures, and of the systems that `mesa baselines run` has asked.

    The judges stand under evaluation.judges in the settings; the reward itself is one more.
    """
    perform(options, [*(partial(judge, seed=s) for s in seeds or options.settings.splits.seeds), report])


@click.command("ablate")
@click.option("--only", "names", multiple=True, metavar="NAME", help="Only this ablation (repeatable); by default all.")
@seed_option
@pipeline_options
def ablate_command(options: Options, names: tuple[str, ...], seeds: tuple[int, ...]) -> None:
    """Search again with some settings changed, and test each beside MESA: without priors, without UCB, route to one, ...

    The section "ablations" of the settings lists them; the report shows what has been tested.
    """
    tracker = options.tracker()
    stages: list[Stage] = [
        partial(ablate, ablation=ablation, seed=seed, tracker=tracker)
        for ablation in find_ablations(options.settings, names)
        for seed in seeds or options.settings.splits.seeds
    ]
    perform(options, [*stages, report])


@click.command("report")
@pipeline_options
def report_command(options: Options) -> None:
    """Write the report: one HTML page, the same in Markdown, and the figures as CSV and JSON."""
    perform(options, [report])


COMMANDS = (
    run_command,
    ingest_command,
    build_command,
    retrieve_command,
    split_command,
    sweep_command,
    optimize_command,
    test_command,
    judge_command,
    ablate_command,
    report_command,
)


def perform(options: Options, stages: Iterable[Stage]) -> None:
    """Run stages one after the other and show what each did.

    Raises:
        WorkFailed: Some items failed; everything else is done and stored.
    """
    summaries: list[Summary] = []
    terminal = options.terminal
    for stage in stages:
        with terminal.watching() as watchers:
            summary = stage(options.context(watchers.progress, watchers.search))
        terminal.summary(summary)
        summaries.append(summary)
    terminal.result({"stages": summaries_json(summaries)})
    failed = sum(len(summary.failed) for summary in summaries)
    if failed:
        raise WorkFailed(f"{failed} items failed; everything else is stored. Run the same command again to retry just those")
