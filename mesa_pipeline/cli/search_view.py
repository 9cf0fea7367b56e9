"""A policy search while it runs: on a terminal the arms and the frontier as they stand, a line now and then anywhere else."""

import time
from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from mesa_pipeline.cli.progress import PLAIN_LINE_SECONDS, BarProgress
from mesa_pipeline.search.loop import SearchPlan, SearchProgress
from mesa_pipeline.search.records import ArmStatistics

WIDTH_OF_ALL_COLUMNS = 66
NARROWEST_DIRECTION = 8


class LiveSearch:
    """Draws the latest state of a search; ``watch`` is told of each.

    Args:
        bars: Where its iterations are counted.
        console: Where the plan is said, once.
    """

    def __init__(self, bars: BarProgress, console: Console) -> None:
        self._bars = bars
        self._console = console
        self._latest: SearchProgress | None = None

    def watch(self, progress: SearchProgress) -> None:
        if self._latest is None or self._latest.plan != progress.plan:
            self._console.print(Text(plan_line(progress.plan)))
        self._latest = progress
        self._bars(title(progress.plan), progress.iteration, progress.plan.iterations)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._latest is None:
            return
        for line in (tried_line(self._latest), frontier_line(self._latest)):
            text = Text(line)
            text.truncate(options.max_width, overflow="ellipsis")
            yield text
        yield _arms_table(self._latest.arms, options.max_width)


class LineSearch:
    """The plan, then a line every ten seconds with the time left, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._plan: SearchPlan | None = None
        self._began = self._last = time.monotonic()
        self._first_iteration = 0

    def watch(self, progress: SearchProgress) -> None:
        now = time.monotonic()
        if self._plan != progress.plan:
            self._plan, self._began, self._last = progress.plan, now, now
            self._first_iteration = progress.iteration
            self._console.print(Text(plan_line(progress.plan)))
        if now - self._last < PLAIN_LINE_SECONDS:
            return
        self._last = now
        done = progress.iteration - self._first_iteration
        left = (progress.plan.iterations - progress.iteration) * (now - self._began) / done if done else 0.0
        counted = f"{progress.iteration} of {progress.plan.iterations} iterations" + (f", {left:.0f} s left" if left else "")
        said = (f"{title(progress.plan)}: {counted}", tried_line(progress), frontier_line(progress))
        self._console.print(Text("; ".join(said)))


def title(plan: SearchPlan) -> str:
    """How a search is called."""
    return f"search, split seed {plan.seed}"


def plan_line(plan: SearchPlan) -> str:
    """The budget of a search before it is spent."""
    return (
        f"{title(plan)}: {plan.iterations} iterations x {plan.slots} slots = {plan.candidates} candidates, "
        f"{plan.proposer} proposer, {plan.directions} direction{'' if plan.directions == 1 else 's'}"
    )


def tried_line(progress: SearchProgress) -> str:
    """What has become of the candidates so far."""
    archive = progress.archive
    repeats = sum(rejection.duplicate_of is not None for rejection in archive.rejections)
    invalid, evaluated = len(archive.rejections) - repeats, max(0, len(archive.entries) - 1)
    return f"{evaluated + repeats + invalid} candidates: {evaluated} evaluated, {repeats} duplicates, {invalid} invalid"


def frontier_line(progress: SearchProgress) -> str:
    """The best policy so far."""
    best = progress.archive.frontier
    worth = best.validation
    named = f"{best.id} ({best.direction})" if best.direction else best.id
    figures = f"score {100 * worth.score:.2f}, {worth.tokens:,.0f} tokens, objective {100 * worth.objective:.2f}"
    return f"best on validation: {named}, {figures}"


def _arms_table(arms: Sequence[ArmStatistics], width: int) -> Table:
    """The arms, with as many columns as the width has room for; never wider."""
    whole = width >= WIDTH_OF_ALL_COLUMNS
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2 if whole else 1, 0, 0))
    table.add_column("direction", no_wrap=True, overflow="ellipsis", min_width=NARROWEST_DIRECTION)
    for name in ("pulls", "mean", *(("bonus", "invalid", "duplicates") if whole else ())):
        table.add_column(name, justify="right", no_wrap=True, overflow="ellipsis")
    for arm in arms:
        mean = f"{100 * arm.value:.2f}" if arm.pulls else "-"
        rest = (f"{100 * arm.bonus:.2f}", str(arm.invalid), str(arm.duplicates)) if whole else ()
        table.add_row(Text(arm.direction), str(arm.pulls), mean, *rest, style="" if arm.pulls else "dim")
    return table
