"""The report's section on language models behind endpoints: what they cost, and what a prefix cache saved."""

from collections.abc import Sequence

from mesa_pipeline.evaluation.prefill import Prefill
from mesa_pipeline.llm.ledger import Spending
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Cell, Column, Row, Section, Table
from mesa_pipeline.reports.tables import facts_table

ANSWER = "answer"
"""The phase in which the sweep reads."""


def spending_section(spending: Sequence[Spending], prefill: Prefill) -> Section:
    """Requests, tokens and seconds by phase and model, and the sweep's prefill.

    Args:
        spending: At least one line.
        prefill: Evidence tokens of the sweep, by our own count.
    """
    return Section("models", "Language models", (), (_spending_table(spending), _prefill_table(spending, prefill)))


def _spending_table(spending: Sequence[Spending]) -> Table:
    columns = (
        Column("Phase", "left"),
        Column("Model", "left"),
        Column("Requests"),
        Column("Failed"),
        Column("Replayed"),
        Column("Prompt", unit="tokens"),
        Column("Cached", unit="tokens"),
        Column("Replies", unit="tokens"),
        Column("Time", unit="s"),
    )
    rows = tuple(_spending_row(line) for line in spending)
    caption = (
        "Of everything done in this workspace, other datasets included. Requests that failed are counted, with the tokens they "
        "were billed for; replayed replies came from our own cache and cost nothing; cached tokens are those of the prompts "
        "that the server had in its prefix cache, as far as it says. Times of requests that ran side by side are added up."
    )
    return Table("spending", "What language models cost", columns, rows, caption, sortable=True)


def _spending_row(line: Spending) -> Row:
    counts = (line.attempts, line.failed, line.replayed, line.prompt_tokens, line.cached_tokens, line.completion_tokens)
    return Row(
        (
            Cell(text.printable(line.phase)),
            Cell(text.printable(line.model)),
            *(Cell(text.number(count), count) for count in counts),
            Cell(text.seconds(line.seconds), line.seconds),
        )
    )


def _prefill_table(spending: Sequence[Spending], prefill: Prefill) -> Table:
    facts = [
        ("Evidence tokens of all prompts of the sweep", text.number(prefill.naive)),
        (
            "Of those, new to a prefix cache",
            f"{text.number(prefill.shared)} ({text.percent(prefill.share, 1)})",
        ),
        *(_measured(line) for line in spending if line.phase == ANSWER and line.prompt_tokens),
    ]
    caption = (
        "The first two by our own count, for the questions of this dataset swept under all 31 subsets: without a cache a "
        "server works through every prompt whole; with one, through each prompt's last section alone. The servers' own counts "
        "are of whole prompts, with instructions, task and question, over all answers in this workspace. Where a server says "
        "nothing of cached tokens, all count as new."
    )
    return facts_table("prefill", "What a prefix cache saves", facts, caption)


def _measured(line: Spending) -> tuple[str, str]:
    fresh = line.prompt_tokens - line.cached_tokens
    share = text.percent(fresh / line.prompt_tokens, 1)
    name = f"Prompt tokens that {line.model} had not in its cache"
    return name, f"{text.number(fresh)} of {text.number(line.prompt_tokens)} ({share})"
