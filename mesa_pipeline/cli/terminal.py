"""What the commands show: progress on standard error, results on standard output."""

import dataclasses
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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

from mesa_pipeline.types import Summary

PLAIN_LINE_SECONDS = 10.0
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}
"""Control characters, which could command the terminal when they stand in a log, and how they are shown instead."""
LONG_FACTS = {"verdict"}
"""Facts that are sentences and get lines of their own."""


class RateColumn(ProgressColumn):
    """Units per second, or seconds per unit where that is the readable number."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f}/s" if speed >= 1 else f"{1 / speed:.1f} s each", style="cyan")


@dataclass
class Terminal:
    """Shows progress and results; with ``as_json`` standard output carries one JSON object and nothing else."""

    as_json: bool = False
    out: Console = field(default_factory=lambda: Console(soft_wrap=True, highlight=False))
    err: Console = field(default_factory=lambda: Console(stderr=True, soft_wrap=True, highlight=False))

    @contextmanager
    def progress(self) -> Iterator["BarProgress | LineProgress"]:
        """Bars with rate and time left on a terminal, a line now and then anywhere else."""
        if not self.err.is_terminal:
            yield LineProgress(self.err)
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            RateColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.err, transient=True) as bars:
            yield BarProgress(bars)

    def say(self, text: str = "") -> None:
        """A line for people; nothing under ``--json``."""
        if not self.as_json:
            self.out.print(text.translate(CONTROLS), markup=False)

    def summary(self, summary: Summary) -> None:
        """One line for a stage, and one for each failure."""
        short = {name: value for name, value in summary.facts.items() if name not in LONG_FACTS}
        facts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in short.items())
        failed = f"  {len(summary.failed)} FAILED" if summary.failed else ""
        work = f"{summary.made:>7,} made {summary.kept:>7,} kept {summary.seconds:8.1f} s"
        self.say(f"{summary.stage:<19} {work}{failed}  {facts}".rstrip())
        for name in LONG_FACTS & summary.facts.keys():
            self.say(f"\n{summary.facts[name]}")
        for line in summary.failed[:10]:
            self.err.print(f"  failed: {line}".translate(CONTROLS), markup=False)
        if len(summary.failed) > 10:
            self.err.print(f"  ... and {len(summary.failed) - 10} more")

    def result(self, value: dict[str, Any]) -> None:
        """The command's result as JSON, under ``--json`` only."""
        if self.as_json:
            sys.stdout.write(json.dumps(value, indent=1, sort_keys=True, default=_plain) + "\n")


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


def summaries_json(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """Summaries for ``--json``."""
    return [dataclasses.asdict(summary) for summary in summaries]


def _plain(value: object) -> object:
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else str(value)
