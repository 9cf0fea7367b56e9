"""What the commands show: progress on standard error, results on standard output."""

import dataclasses
import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group
from rich.live import Live

from mesa_pipeline.cli.progress import BarProgress, LineProgress, progress_bars
from mesa_pipeline.cli.search_view import LineSearch, LiveSearch
from mesa_pipeline.search.loop import SearchProgress
from mesa_pipeline.types import Summary

CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}
"""Control characters, which could command the terminal when they stand in a log, and how they are shown instead."""
LONG_FACTS = {"verdict"}
"""Facts that are sentences and get lines of their own."""


@dataclass(frozen=True)
class Watchers:
    """Who is told how far a stage is.

    Attributes:
        progress: Of long work.
        search: Of a policy search.
    """

    progress: BarProgress | LineProgress
    search: Callable[[SearchProgress], None]


@dataclass
class Terminal:
    """Shows progress and results; with ``as_json`` standard output carries one JSON object and nothing else.

    Attributes:
        as_json: Whether a script reads standard output.
        out: Standard output; a terminal shows long lines wrapped between words, anything else gets them whole.
        err: Standard error, likewise.
        live: Standard error for what is drawn again and again, which must not be wider than the terminal.
    """

    as_json: bool = False
    out: Console = field(default_factory=lambda: Console(soft_wrap=True, highlight=False))
    err: Console = field(default_factory=lambda: Console(stderr=True, soft_wrap=True, highlight=False))
    live: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))

    @contextmanager
    def watching(self) -> Iterator[Watchers]:
        """Bars with rate and time left, and a search as it stands, on a terminal; a line now and then anywhere else."""
        if not self.err.is_terminal:
            yield Watchers(LineProgress(self.err), LineSearch(self.err).watch)
            return
        bars = progress_bars(self.live)
        progress = BarProgress(bars)
        search = LiveSearch(progress, self.live)
        with Live(Group(bars, search), console=self.live, transient=True):
            yield Watchers(progress, search.watch)

    def say(self, text: str = "", hanging: int = 0) -> None:
        """Lines for people; nothing under ``--json``.

        Args:
            text: The lines.
            hanging: Columns by which a terminal indents what it shows of a long line below its beginning.
        """
        if not self.as_json:
            self.out.print(_wrapped(text.translate(CONTROLS), self.out, hanging), markup=False)

    def say_below(self, text: str) -> None:
        """A sentence that belongs to the line before."""
        self.say(f"  {text}".rstrip(), hanging=4)

    def summary(self, summary: Summary) -> None:
        """One line for a stage, and one for each failure."""
        short = {name: value for name, value in summary.facts.items() if name not in LONG_FACTS}
        facts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in short.items())
        failed = f"  {len(summary.failed)} FAILED" if summary.failed else ""
        work = f"{summary.made:>7,} made {summary.kept:>7,} kept {summary.seconds:8.1f} s"
        self.say(f"{summary.stage:<19} {work}{failed}  {facts}".rstrip(), hanging=4)
        for name in LONG_FACTS & summary.facts.keys():
            self.say(f"\n{summary.facts[name]}")
        for line in summary.failed[:10]:
            self.error(f"  failed: {line}")
        if len(summary.failed) > 10:
            self.error(f"  ... and {len(summary.failed) - 10} more")

    def error(self, text: str) -> None:
        """What went wrong, on standard error."""
        self.err.print(_wrapped(text.translate(CONTROLS), self.err, 0), markup=False)

    def result(self, value: dict[str, Any]) -> None:
        """The command's result as JSON, under ``--json`` only."""
        if self.as_json:
            sys.stdout.write(json.dumps(value, indent=1, sort_keys=True, default=_plain) + "\n")


def summaries_json(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """Summaries for ``--json``."""
    return [dataclasses.asdict(summary) for summary in summaries]


def _wrapped(text: str, console: Console, hanging: int) -> str:
    """Each line broken between words to the width of a terminal, never within one, so that an address stays whole."""
    if not console.is_terminal:
        return text
    wrap = textwrap.TextWrapper(
        console.width,
        subsequent_indent=" " * hanging,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(wrap.fill(line) for line in text.split("\n"))


def _plain(value: object) -> object:
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else str(value)
