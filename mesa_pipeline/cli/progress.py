"""How far long work is: bars on a terminal, a line now and then anywhere else."""

import time
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

PLAIN_LINE_SECONDS = 10.0
WIDTH_OF_ALL_COLUMNS = 90


class RateColumn(ProgressColumn):
    """Units per second, or seconds per unit where that is the readable number."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f}/s" if speed >= 1 else f"{1 / speed:.1f} s each", style="cyan")


def progress_bars(console: Console) -> Progress:
    """Bars with rate and time left, not yet shown; a narrow terminal gets the counts and the time left alone."""
    whole = console.width >= WIDTH_OF_ALL_COLUMNS
    columns = (
        TextColumn("{task.description}"),
        *((BarColumn(),) if whole else ()),
        MofNCompleteColumn(),
        *((RateColumn(), TimeElapsedColumn()) if whole else ()),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console)


class BarProgress:
    """One bar for each description."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, Any] = {}

    def __call__(self, description: str, done: int, total: int) -> None:
        if not total:
            return
        if description not in self._tasks:
            self._tasks[description] = self._bars.add_task(description, total=total)
        self._bars.update(self._tasks[description], completed=done, total=total)


class LineProgress:
    """A line every ten seconds, with rate and time left, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started: dict[str, float] = {}
        self._last = time.monotonic()

    def __call__(self, description: str, done: int, total: int) -> None:
        now = time.monotonic()
        began = self._started.setdefault(description, now)
        if not total or now - self._last < PLAIN_LINE_SECONDS:
            return
        self._last = now
        rate = done / (now - began) if now > began else 0.0
        left = f", {(total - done) / rate:.0f} s left" if rate else ""
        self._console.print(f"{description}: {done:,} of {total:,} ({rate:.2f}/s{left})", markup=False)
