"""``mesa baselines``: the systems MESA is compared with."""

from functools import partial
from pathlib import Path

import click

from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.baselines.environments import WorkerEnvironment
from mesa_pipeline.cli.options import Options, pipeline_options, settings_options
from mesa_pipeline.cli.pipeline import perform
from mesa_pipeline.cli.terminal import Terminal
from mesa_pipeline.config import Settings
from mesa_pipeline.stages.baseline_report import baseline_report
from mesa_pipeline.stages.baselines import run_baseline
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.systems import ENVIRONMENTS

ASKS = {"none": "never", "once": "a fixed number of times", "loop": "as often as it wants"}


@click.group("baselines")
def baselines_group() -> None:
    """Compare with other memory systems: the same reader, judge, splits and token counter as MESA."""


@baselines_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for scripts instead of text.")
def list_command(as_json: bool) -> None:
    """What there is, where it comes from, and what it needs."""
    terminal = Terminal(as_json)
    for code, baseline in BASELINES.items():
        known = baseline.provenance
        terminal.say(f"{code}: {baseline.title} ({known.source})")
        terminal.say(f"  runs: {known.package or 'written anew from its description'}")
        terminal.say(f"  asks a language model while a question is answered: {ASKS[baseline.query_model]}")
        for line in known.from_paper:
            terminal.say(f"  as in the paper: {line}")
        for line in known.choices:
            terminal.say(f"  our choice: {line}")
    terminal.result({"baselines": [_described(code) for code in BASELINES]})


@baselines_group.command("run")
@click.option(
    "--system",
    "codes",
    multiple=True,
    type=click.Choice(list(BASELINES)),
    help="Only this one (repeatable); by default all that the settings can run.",
)
@pipeline_options
def run_command(options: Options, codes: tuple[str, ...]) -> None:
    """Build each system's memories, answer every question from them, and score the answers.

    Continues where an earlier run stopped, and does nothing that is done already.
    """
    perform(options, [ingest, *(partial(run_baseline, code=code) for code in codes or BASELINES)])


@baselines_group.command("report")
@pipeline_options
def report_command(options: Options) -> None:
    """Write the paper's tables and figures, with every system that was run, the paper's own figures in columns of their own."""
    perform(options, [baseline_report])


@baselines_group.command("install")
@click.argument(
    "names", nargs=-1, required=True, type=click.Choice([code for code in BASELINES if BASELINES[code].provenance.package])
)
@settings_options
def install_command(names: tuple[str, ...], settings: Settings, workspace: Path, terminal: Terminal) -> None:
    """Make the environment that a wrapped package runs in, with pinned versions, inside the workspace.

    Such packages cannot share an environment with ours or with one another. Nothing else is touched.
    """
    for name in names:
        environment = WorkerEnvironment(name, workspace / ENVIRONMENTS)
        environment.make(terminal.say)
        terminal.say(f"{name}: ready; run it with `mesa baselines run --system {name} --workspace {workspace}`")
    terminal.result({"installed": list(names)})


def _described(code: str) -> dict[str, object]:
    baseline = BASELINES[code]
    known = baseline.provenance
    return {
        "code": code,
        "title": baseline.title,
        "source": known.source,
        "package": known.package,
        "from_paper": list(known.from_paper),
        "choices": list(known.choices),
        "asks_while_answering": baseline.query_model,
        "needs_embedder": baseline.needs_embedder,
        "needs_model": baseline.needs_model,
    }
