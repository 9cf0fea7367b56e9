"""``mesa ask``: one question over one trajectory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import Layout
from mesa_pipeline.cli.options import settings_options
from mesa_pipeline.cli.terminal import Terminal
from mesa_pipeline.config import Settings
from mesa_pipeline.datasets import DATASETS, dataset_source
from mesa_pipeline.errors import ArtifactError, DataError
from mesa_pipeline.policies import FittedPolicy
from mesa_pipeline.policies.fixed import FixedPolicy
from mesa_pipeline.search.freeze import load_frozen
from mesa_pipeline.stages.ask import AskResult, MemoryShelf, Selector, ask
from mesa_pipeline.stages.context import open_reading, structures_of
from mesa_pipeline.types import Episode

PREVIEW_CHARS = 280
SHELF = "asked"


@click.command("ask")
@click.argument("question")
@click.option("--data", type=click.Path(path_type=Path), help="File or folder with the trajectory; synthetic needs none.")
@click.option("--dataset", default="traces", show_default=True, help=f"Format of the data: {', '.join(DATASETS)}.")
@click.option("--episode", help="Id of the episode, where the data holds several.")
@click.option(
    "--policy",
    "policy_name",
    metavar="DIR|SUBSET",
    help="A frozen policy's folder, or a fixed subset such as S+T. By default the policy frozen last in the workspace.",
)
@click.option("--full", is_flag=True, help="Show the evidence whole instead of the beginning of each piece.")
@settings_options
def ask_command(  # noqa: PLR0913 - one parameter for each option
    *,
    question: str,
    data: Path | None,
    dataset: str,
    episode: str | None,
    policy_name: str | None,
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
    """
    policy = open_selector(policy_name, workspace, settings)
    trajectory = choose_episode(data, dataset, episode, settings).trajectory
    memories = MemoryShelf(structures_of(settings), Layout(workspace, SHELF))
    result = ask(question, trajectory, policy, memories, open_reading(settings, dataset))
    show(terminal, result, PREVIEW_CHARS if not full else None)
    terminal.result(as_json(question, trajectory.id, result))


def open_selector(name: str | None, workspace: Path, settings: Settings) -> Selector:
    """A frozen policy by folder, a fixed subset by its label, or the policy frozen last in the workspace.

    Raises:
        ArtifactError: There is none; says how to make one.
    """
    if name is None:
        return load_frozen(_latest_frozen(workspace))
    if Path(name).is_dir():
        return load_frozen(Path(name))
    codes = name.upper().split("+")
    if not set(codes) <= set(subsets.STRUCTURE_CODES):
        raise ArtifactError(
            f"--policy {name!r} is neither a folder nor a subset such as S+T of {'+'.join(subsets.STRUCTURE_CODES)}"
        )
    fixed = FixedPolicy(subsets.encode(codes))
    return FittedPolicy(fixed, {})


def choose_episode(data: Path | None, dataset: str, wanted: str | None, settings: Settings) -> Episode:
    """The episode to ask about.

    Raises:
        DataError: The data cannot be read, holds several episodes and none was named, or none of that name.
    """
    source = dataset_source(dataset)
    if data is None and source.needs_path:
        raise DataError(f"name the trajectory's file with --data (dataset {dataset!r}: {source.description})")
    if data is not None and not data.exists():
        raise DataError(f"{data} does not exist")
    episodes = source.load(data, settings.datasets, False).episodes
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
    names = " + ".join(subsets.STRUCTURE_NAMES[code] for code in subsets.decode(result.subset))
    spent = ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in result.seconds.items())
    terminal.say(f"\nRead:   {names}\nWhy:    {result.reason}\nTokens: {result.composed.tokens:,}\nTime:   {spent}\n\nEvidence")
    for code, evidence in result.evidence.items():
        if evidence.is_empty:
            terminal.say(f"  {subsets.STRUCTURE_NAMES[code]}: nothing found")
        for item in evidence.items:
            terminal.say(f"  {subsets.STRUCTURE_NAMES[code]}, {_steps(item.steps)}: {_preview(item.text, max_chars)}")


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
        "structures": [subsets.STRUCTURE_NAMES[code] for code in subsets.decode(result.subset)],
        "reason": result.reason,
        "evidence_tokens": result.composed.tokens,
        "evidence": evidence,
        "seconds": dict(result.seconds),
    }


def _latest_frozen(workspace: Path) -> Path:
    manifests = sorted(workspace.glob("*/policies/seed-*/frozen/manifest.json"), key=lambda path: path.stat().st_mtime)
    if not manifests:
        raise ArtifactError(
            f"no frozen policy in {workspace}; make one with `mesa run`, or choose structures yourself, as in --policy S+T"
        )
    return manifests[-1].parent


def _steps(steps: Sequence[int]) -> str:
    if not steps:
        return "no step"
    if len(steps) == 1:
        return f"step {steps[0]}"
    is_range = list(steps) == list(range(steps[0], steps[-1] + 1))
    return f"steps {steps[0]}-{steps[-1]}" if is_range else "steps " + ", ".join(map(str, steps[:12]))


def _preview(text: str, max_chars: int | None) -> str:
    if max_chars is None:
        return text
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[:max_chars] + " ..."
