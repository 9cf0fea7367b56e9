"""``mesa ask``: one question over one trajectory."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from mesa_pipeline import subsets
from mesa_pipeline.api import Mesa
from mesa_pipeline.cli.options import settings_options
from mesa_pipeline.cli.terminal import Terminal
from mesa_pipeline.config import Settings
from mesa_pipeline.datasets import DATASETS, dataset_source
from mesa_pipeline.errors import DataError
from mesa_pipeline.policies.budgeted_reading import BudgetedReading
from mesa_pipeline.stages.ask import AskResult
from mesa_pipeline.types import Episode

PREVIEW_CHARS = 280


@click.command("ask")
@click.argument("question")
@click.option("--data", type=click.Path(path_type=Path), help="File or folder with the trajectory; synthetic needs none.")
@click.option("--dataset", default="traces", show_default=True, help=f"Format of the data: {', '.join(DATASETS)}.")
@click.option(
    "--skip-invalid", is_flag=True, help="Leave out episodes that cannot be read, and list them, instead of stopping."
)
@click.option("--episode", help="Id of the episode, where the data holds several.")
@click.option(
    "--policy",
    "policy_name",
    metavar="DIR|SUBSET",
    help="A frozen policy's folder, or a fixed subset such as S+T. By default the dataset's champion, where it has one, else "
    "the policy frozen last in the workspace.",
)
@click.option("--seed", type=int, help="The policy frozen for this split seed of the dataset, instead of the champion.")
@click.option(
    "--max-evidence-tokens",
    type=click.IntRange(min=0),
    metavar="N",
    help="Never read more evidence tokens than this: where the policy's choice has more, the subset of highest expected value "
    "that fits is read instead.",
)
@click.option("--no-trace", is_flag=True, help="Keep no trace of this question for `mesa track` to record in MLflow.")
@click.option("--full", is_flag=True, help="Show the evidence whole instead of the beginning of each piece.")
@settings_options
def ask_command(  # noqa: PLR0913 - one parameter for each option
    *,
    question: str,
    data: Path | None,
    dataset: str,
    skip_invalid: bool,
    episode: str | None,
    policy_name: str | None,
    seed: int | None,
    max_evidence_tokens: int | None,
    no_trace: bool,
    full: bool,
    settings: Settings,
    workspace: Path,
    terminal: Terminal,
) -> None:
    """Answer QUESTION about one trajectory, reading only the structures the policy selects.

    Shows the answer, which structures were read and why, the evidence with its step numbers, and what it cost.

    \b
    mesa ask --data run.jsonl "Which command failed at step 12?"
    mesa ask --dataset synthetic --episode synthetic-0003 "What happened after step 5?"
    mesa ask --data run.jsonl --max-evidence-tokens 2000 "Which command failed at step 12?"
    """
    mesa = Mesa(workspace, policy_name, settings, max_evidence_tokens, not no_trace, dataset, seed)
    trajectory = choose_episode(data, dataset, episode, settings, skip_invalid).trajectory
    result = mesa.ask(question, trajectory)
    show(terminal, result, PREVIEW_CHARS if not full else None)
    terminal.say(f"\nPolicy: {mesa.policy}")
    terminal.result({**as_json(question, trajectory.id, result), "policy": mesa.policy})


def choose_episode(
    data: Path | None, dataset: str, wanted: str | None, settings: Settings, skip_invalid: bool = False
) -> Episode:
    """The episode to ask about.

    Raises:
        DataError: The data cannot be read, holds several episodes and none was named, or none of that name.
    """
    source = dataset_source(dataset)
    if data is None and source.needs_path:
        raise DataError(f"name the trajectory's file with --data (dataset {dataset!r}: {source.description})")
    if data is not None and not data.exists():
        raise DataError(f"{data} does not exist")
    episodes = source.load(data, settings.datasets, skip_invalid).episodes
    if wanted is None and len(episodes) == 1:
        return episodes[0]
    ids = [episode.id for episode in episodes]
    shown = ", ".join(ids[:8]) + (f", ... ({len(ids)} in all)" if len(ids) > 8 else "")
    if wanted is None:
        raise DataError(f"the data holds {len(ids)} episodes; choose one with --episode: {shown}")
    if wanted not in ids:
        raise DataError(f"no episode {wanted!r}; there are {shown}")
    return episodes[ids.index(wanted)]


def show(terminal: Terminal, result: AskResult, max_chars: int | None) -> None:
    """Answer first, then what it rests on."""
    if result.answer.error:
        terminal.say(f"No answer: {result.answer.error}")
    else:
        terminal.say(result.answer.text or "No answer: the evidence read holds nothing on this question.")
    names = " + ".join(_names(result.evidence)) or "nothing"
    spent = ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in result.seconds.items())
    tokens = f"{result.composed.tokens:,}" + (f" of {result.budget.limit:,} allowed" if result.budget else "")
    terminal.say(f"\nRead:   {names}\nWhy:    {result.reason}\nTokens: {tokens}\nTime:   {spent}\n\nEvidence", hanging=8)
    for code, evidence in result.evidence.items():
        if evidence.is_empty:
            terminal.say(f"  {subsets.STRUCTURE_NAMES[code]}: nothing found")
        for item in evidence.items:
            terminal.say(
                f"  {subsets.STRUCTURE_NAMES[code]}, {_steps(item.steps)}: {_preview(item.text, max_chars)}", hanging=4
            )


def as_json(question: str, trajectory_id: str, result: AskResult) -> dict[str, Any]:
    """The result for ``--json``."""
    evidence = [
        {"structure": subsets.STRUCTURE_NAMES[code], "steps": list(item.steps), "score": item.score, "text": item.text}
        for code, found in result.evidence.items()
        for item in found.items
    ]
    return {
        "question": question,
        "trajectory": trajectory_id,
        "answer": result.answer.text,
        "error": result.answer.error,
        "structures": _names(result.evidence),
        "reason": result.reason,
        "evidence_tokens": result.composed.tokens,
        "budget": _budget_json(result.budget) if result.budget else None,
        "evidence": evidence,
        "seconds": dict(result.seconds),
    }


def _budget_json(budget: BudgetedReading) -> dict[str, Any]:
    return {
        "max_evidence_tokens": budget.limit,
        "policy_choice": _names(subsets.decode(budget.wanted)),
        "policy_choice_tokens": budget.wanted_tokens,
        "kept": budget.kept,
        "dropped": _names(budget.dropped),
        "cut": subsets.STRUCTURE_NAMES[budget.cut] if budget.cut else None,
    }


def _names(codes: Iterable[str]) -> list[str]:
    return [subsets.STRUCTURE_NAMES[code] for code in codes]


def _steps(steps: Sequence[int]) -> str:
    if not steps:
        return "no step"
    if len(steps) == 1:
        return f"step {steps[0]}"
    is_range = all(after == step + 1 for step, after in pairwise(steps))
    return f"steps {steps[0]}-{steps[-1]}" if is_range else "steps " + ", ".join(map(str, steps[:12]))


def _preview(text: str, max_chars: int | None) -> str:
    if max_chars is None:
        return text
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[:max_chars] + " ..."
