"""``mesa ledger``: what the language models behind endpoints cost so far."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

import click

from mesa_pipeline.artifacts import LEDGER
from mesa_pipeline.cli.options import settings_options
from mesa_pipeline.cli.terminal import Terminal
from mesa_pipeline.config import Settings
from mesa_pipeline.llm.ledger import Ledger, Spending

HEADINGS = ("phase", "model", "attempts", "failed", "replayed", "prompt", "cached", "completion", "seconds")
LABELS = 2
"""Columns of text, which are flush left; the others are figures."""


@click.command("ledger")
@settings_options
def ledger_command(settings: Settings, workspace: Path, terminal: Terminal) -> None:
    """Show what models behind endpoints cost: requests, tokens and seconds, by phase and model.

    Attempts that failed are counted with the tokens they were billed for. Replayed is what came from the cache and cost
    nothing; cached tokens are those that the server had in its own prefix cache. Seconds of requests that ran side by side
    are added up.
    """
    path = workspace / LEDGER
    spending = Ledger(path).spending() if path.exists() else ()
    total = total_of(spending)
    terminal.result({"spending": [asdict(line) for line in spending], "total": asdict(total)})
    if not spending:
        terminal.say(f"No model behind an endpoint was asked in {workspace}.")
        return
    rows = [HEADINGS, *map(_cells, (*spending, total))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        terminal.say("  ".join(map(_aligned, row, widths, range(len(row)))).rstrip())


def total_of(spending: Sequence[Spending]) -> Spending:
    """The sums over all phases and models."""
    total = Spending("total", "", 0, 0, 0, 0, 0, 0, 0.0)
    for field in fields(Spending)[LABELS:]:
        total = replace(total, **{field.name: sum(getattr(line, field.name) for line in spending)})
    return total


def _cells(line: Spending) -> tuple[str, ...]:
    figures = (f"{getattr(line, field.name):,}" for field in fields(Spending)[LABELS:-1])
    return (line.phase, line.model, *figures, f"{line.seconds:,.1f}")


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < LABELS else cell.rjust(width)
