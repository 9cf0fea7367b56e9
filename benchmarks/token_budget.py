"""What `mesa ask --max-evidence-tokens` scores on test questions, beside the outcome table's reading of whole subsets alone.

Usage: python benchmarks/token_budget.py WORKSPACE DATASET [--seed N] [--sample N]

Needs a workspace with a sweep and a policy frozen with its expected values. "Whole": the policy's choice where it fits, else
the subset of highest expected value that does, and score 0 where none does. "Filled": the same with the room left filled piece
by piece, as `mesa ask` does, really read. The policy and its values see the benchmark's labels.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import load_settings
from mesa_pipeline.evaluation.sweep import Reading
from mesa_pipeline.policies import PolicyInput
from mesa_pipeline.policies.base import policy_input
from mesa_pipeline.policies.budget import NOTHING, TokenBudget, choose_within
from mesa_pipeline.policies.budgeted_reading import read_within
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.freeze import FrozenPolicy, load_frozen
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import open_reading
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.storage import read_evidence, read_manifest, read_questions, read_task
from mesa_pipeline.stages.table import read_table
from mesa_pipeline.subsets import STRUCTURE_NAMES
from mesa_pipeline.types import Evidence, Question


@dataclass(frozen=True)
class Case:
    """One test question with all that its answer depends on; scores and tokens have shape ``(31,)``."""

    question: Question
    task: str
    shown: PolicyInput
    evidence: dict[str, Evidence]
    scores: np.ndarray
    tokens: np.ndarray


def cases(context: StageContext, seed: int, sample: int) -> Iterator[Case]:
    """A seeded sample of the test questions of a split seed."""
    split = read_split(context, seed)
    table = read_table(context, split.test).matrix
    chosen = set(np.random.default_rng(0).permutation(len(table))[:sample].tolist())
    rows = {question.id: row for row, question in enumerate(table.questions) if row in chosen}
    for entry in read_manifest(context.layout).entries(split.test):
        evidence = {code: read_evidence(context.layout, code, name, entry.key) for code, name in STRUCTURE_NAMES.items()}
        for question in read_questions(context.layout, entry.key):
            if (row := rows.get(question.id)) is not None:
                found = {code: by_question[question.id] for code, by_question in evidence.items()}
                shown = policy_input(table.questions[row], labels=True)
                task = read_task(context.layout, entry.key)
                yield Case(question, task, shown, found, table.scores[row], table.tokens[row])


def whole_score(case: Case, frozen: FrozenPolicy, limit: int) -> float:
    worth = frozen.values.worth(case.shown, case.tokens)
    wanted = np.array([frozen.select(case.shown)])
    (mask,) = choose_within(wanted, worth[np.newaxis], case.tokens[np.newaxis], limit).tolist()
    return 0.0 if mask == NOTHING else float(case.scores[mask - 1])


def filled_score(case: Case, frozen: FrozenPolicy, limit: int, reading: Reading) -> float:
    budget = TokenBudget(limit, frozen.values)
    found = read_within(budget, frozen.select(case.shown), case.shown, lambda codes: _of(case, codes), reading.counter)
    if reading.counter.count(found.composed.text) > limit:
        raise AssertionError(f"{case.question.id}: the budget of {limit} is exceeded")
    answer = reading.reader.answer(case.question.text, case.task, found.composed)
    score = reading.reward.judge(case.question, case.task, answer.text).score
    return np.nan if score is None else score


def _of(case: Case, codes: Iterable[str]) -> dict[str, Evidence]:
    return {code: case.evidence[code] for code in codes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workspace", type=Path)
    parser.add_argument("dataset")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=300)
    arguments = parser.parse_args()
    settings = load_settings(environment={})
    context = StageContext(Layout(arguments.workspace, arguments.dataset), settings)
    reading = open_reading(settings, context.layout)
    sandbox = open_sandbox(settings.policies.sandbox)
    frozen = load_frozen(context.layout.policy(arguments.seed) / "frozen", sandbox)
    found = list(cases(context, arguments.seed, arguments.sample))
    print("| budget | questions | whole | filled | difference | its standard error |\n| --- | --- | --- | --- | --- | --- |")
    for limit in settings.evaluation.budgets:
        whole = np.array([whole_score(case, frozen, limit) for case in found])
        filled = np.array([filled_score(case, frozen, limit, reading) for case in found])
        gain = 100 * (filled - whole)
        error = gain.std(ddof=1) / len(gain) ** 0.5
        line = f"{100 * whole.mean():.2f} | {100 * filled.mean():.2f} | {gain.mean():+.2f} | {error:.2f}"
        print(f"| {limit:,} | {len(found)} | {line} |", flush=True)


if __name__ == "__main__":
    main()
