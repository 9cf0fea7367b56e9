"""Whether a real server's prefix cache saves in the sweep what it should: llama.cpp's own count beside ours.

Run ``python -m benchmarks.prefill_served WORKSPACE DATASET`` (``--questions`` for more); reads only. Takes the shortest
question of each domain whose longest prompt fits the local model's context, has the local model read it under all 31 subsets in
prefix order, and prints the share of prompt tokens that were new to the server beside that of ``benchmarks.prefill`` for the
same prompts. The model is SmolLM2-135M with replies of one token: prompts are what is measured. Its own tokens are not ours, so
the shares may differ a little.
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.prefill import swept
from mesa_pipeline.artifacts import LEDGER, Layout
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.llm.ledger import Ledger
from mesa_pipeline.llm.tokens import QwenTokenCounter
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.reading.llm import LlmReader
from mesa_pipeline.stages.models import chat_opener
from mesa_pipeline.stages.storage import EpisodeEntry, read_evidence, read_manifest, read_outcomes, read_questions, read_task
from mesa_pipeline.subsets import FULL_SUBSET, STRUCTURE_NAMES, prefix_order

ROOM = 0.75
"""Share of the context that evidence may take: the model counts more tokens than we do."""
OVERRIDES = ("llm.chat.max_concurrency=1", "llm.roles.answer.max_tokens=1", "llm.chat.timeout_seconds=3600")


@dataclass(frozen=True)
class Case:
    """A question with the evidence tokens of all five structures."""

    entry: EpisodeEntry
    question_id: str
    tokens: int


def cases(layout: Layout, limit: int) -> Iterator[Case]:
    """The shortest question of each domain, where all its evidence together has no more tokens than ``limit``."""
    shortest: dict[str, Case] = {}
    for entry in read_manifest(layout).episodes:
        if not layout.outcomes(entry.key).exists():
            continue
        for outcome in read_outcomes(layout, entry.key):
            if outcome.subset == FULL_SUBSET and 0 < outcome.tokens <= limit:
                case = Case(entry, outcome.question_id, outcome.tokens)
                shortest[entry.domain] = min(shortest.get(entry.domain, case), case, key=lambda case: case.tokens)
    yield from (shortest[domain] for domain in sorted(shortest))


def read_all(layout: Layout, case: Case, settings: Settings, workspace: Path) -> None:
    """Have the local model read a question under all subsets, each distinct prompt once."""
    reader = LlmReader(chat_opener(settings, workspace)("answer"))
    evidence = {code: read_evidence(layout, code, name, case.entry.key) for code, name in STRUCTURE_NAMES.items()}
    composer = Composer({code: found[case.question_id] for code, found in evidence.items()}, _counter(settings))
    question = next(question for question in read_questions(layout, case.entry.key) if question.id == case.question_id)
    for subset in prefix_order():
        answer = reader.answer(question.text, read_task(layout, case.entry.key), composer.compose(subset))
        if answer.error is not None:
            raise SystemExit(answer.error)


def line(layout: Layout, case: Case, settings: Settings) -> str:
    """A line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        read_all(layout, case, settings, Path(folder))
        (spent,) = Ledger(Path(folder, LEDGER)).spending()
    cost = swept(layout, case.entry, _counter(settings), case.question_id).cost
    measured = (spent.prompt_tokens - spent.cached_tokens) / spent.prompt_tokens
    return (
        f"| {case.entry.domain} | {case.tokens:,} | {spent.attempts} | {spent.prompt_tokens:,} | {spent.cached_tokens:,} "
        f"| {measured:.3f} | {cost.question / cost.naive:.3f} | {spent.seconds:,.0f} |"
    )


def _counter(settings: Settings) -> QwenTokenCounter:
    return QwenTokenCounter(settings.llm.tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("dataset")
    parser.add_argument("--questions", type=int, default=2)
    arguments = parser.parse_args()
    layout = Layout(arguments.workspace, arguments.dataset)
    settings = load_settings(environment={}, profile="local-llm", overrides=OVERRIDES)
    print(
        "| domain | evidence of all five | requests | prompt tokens | cached | new, measured | new, expected | s |", flush=True
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    chosen = list(cases(layout, int(ROOM * settings.llm.chat.context_tokens)))
    for case in [chosen[k] for k in np.linspace(0, len(chosen) - 1, min(arguments.questions, len(chosen))).astype(int)]:
        print(line(layout, case, settings), flush=True)


if __name__ == "__main__":
    main()
