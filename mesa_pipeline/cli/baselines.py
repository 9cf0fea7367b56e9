"""``mesa baselines``: the systems MESA is compared with."""

import time
from functools import partial
from pathlib import Path

import click

from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.baselines.environments import WorkerEnvironment
from mesa_pipeline.cli.groups import CommandsInOrder
from mesa_pipeline.cli.options import Options, pipeline_options, settings_options
from mesa_pipeline.cli.pipeline import Stage, perform
from mesa_pipeline.cli.terminal import Terminal
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import MissingDependency, Unreachable
from mesa_pipeline.stages.baseline_report import baseline_report
from mesa_pipeline.stages.baselines import run_baseline
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.systems import ENVIRONMENTS
from mesa_pipeline.types import Summary

ASKS = {"none": "never", "once": "a fixed number of times", "loop": "as often as it wants"}


@click.group("baselines", cls=CommandsInOrder)
def baselines_group() -> None:
    """Compare with other memory systems: the same reader, judge, splits and token counter as MESA."""


@baselines_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for scripts instead of text.")
def list_command(as_json: bool) -> None:
    """What there is, where it comes from, and what it needs."""
    terminal = Terminal(as_json)
    for code, baseline in BASELINES.items():
        known = baseline.provenance
        terminal.say(f"{code}: {baseline.title}")
        for line in (
            f"from: {known.source}",
            f"runs: {known.package or 'written anew from its description'}",
            f"asks a language model while a question is answered: {ASKS[baseline.query_model]}",
            *(f"as in the paper: {line}" for line in known.from_paper),
            *(f"our choice: {line}" for line in known.choices),
        ):
            terminal.say_below(line)
    terminal.result({"baselines": [_described(code) for code in BASELINES]})


@baselines_group.command("run")
@click.option(
    "--system",
    "codes",
    multiple=True,
    metavar="NAME",
    type=click.Choice(list(BASELINES)),
    help="Only this one, by its name in mesa baselines list (repeatable); by default all that the settings can run.",
)
@pipeline_options
def run_command(options: Options, codes: tuple[str, ...]) -> None:
    """Build each system's memories, answer every question from them, and score the answers.

    Continues where an earlier run stopped, and does nothing that is done already. Of all systems those are run that can be, and
    of the others it is said what they need.
    """
    runs = [partial(run_baseline, code=code) for code in codes] or map(RunsWherePossible().stage, BASELINES)
    perform(options, [ingest, *runs])


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


class RunsWherePossible:
    """Runs of one system after the other, where what one needs and is not there keeps none of the others from running."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._without_model: str | None = None

    def stage(self, code: str) -> Stage:
        """The run of a system, as a stage."""
        return partial(self._run, code=code)

    def _run(self, context: StageContext, code: str) -> Summary:
        baseline, started = BASELINES[code], time.perf_counter()
        if baseline.needs_model and self._without_model:
            return self._left_out(baseline.title, self._without_model, started)
        try:
            return run_baseline(context, code)
        except MissingDependency as missing:
            if baseline.needs_model and isinstance(missing, Unreachable):
                self._without_model = str(missing)  # the other systems would wait for it just as long
            return self._left_out(baseline.title, str(missing), started)

    def _left_out(self, title: str, reason: str, started: float) -> Summary:
        """What is missing is said once; of further systems, which one it was said of."""
        first = self._reasons.setdefault(reason, title)
        said = f"because {reason}" if first == title else f"for the reason of {first}"
        return Summary(f"baseline {title}", 0, 0, time.perf_counter() - started, facts={"not_run": said})


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
