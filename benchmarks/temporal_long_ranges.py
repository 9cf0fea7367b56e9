"""What the temporal store should return when a question names more steps than evidence may hold.

Usage: python benchmarks/temporal_long_ranges.py [--data DIR] [--more-than N] [--at-most N]

Over the development questions that name so many steps: mean evidence tokens, and the share of the reference answer's words that
stand in the evidence, with and without the list of actions.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mesa_pipeline.config import load_settings
from mesa_pipeline.datasets import ama_bench
from mesa_pipeline.llm.tokens import QwenTokenCounter
from mesa_pipeline.stores.tokenizers import STOP_WORDS, split_words
from mesa_pipeline.structures.step_references import parse_references
from mesa_pipeline.structures.temporal import TemporalMemory
from mesa_pipeline.types import Evidence

EVERYTHING = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--more-than", type=int, default=40)
    parser.add_argument("--at-most", type=int, default=EVERYTHING)
    arguments = parser.parse_args()
    settings = load_settings(environment={})
    path = arguments.data / "ama_bench" / "open_end_qa_set.jsonl"
    episodes = ama_bench.load(path, settings.datasets, False).episodes
    counter = QwenTokenCounter(settings.llm.tokenizer)
    base = settings.structures.temporal
    print("| records | actions listed | questions | mean tokens | answer words held, % |\n| --- | --- | --- | --- | --- |")
    for max_steps in (EVERYTHING, 80, 40, 20, 10):
        structure = TemporalMemory(
            base.model_copy(update={"max_steps": max_steps}), settings.stores.bm25, settings.evidence.max_chars_per_step
        )
        memories = {episode.id: structure.build(episode.trajectory) for episode in episodes}
        variants: dict[str, Callable[[Evidence], str]] = {"yes": _whole, "no": _records}
        for listed, render in variants.items():
            tokens, recalls = [], []
            for episode in episodes:
                for question in episode.questions:
                    named = parse_references(question.text, episode.trajectory.last_index).indices
                    words = frozenset(split_words(question.answer or "")) - STOP_WORDS
                    if arguments.more_than < len(named) <= arguments.at_most and words:
                        text = render(structure.retrieve(memories[episode.id], question.text))
                        tokens.append(counter.count(text))
                        recalls.append(len(words & frozenset(split_words(text))) / len(words))
            cells = (max_steps, listed, len(tokens), f"{np.mean(tokens):.0f}", f"{100 * np.mean(recalls):.1f}")
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def _whole(evidence: Evidence) -> str:
    return "\n\n".join(item.text for item in evidence.items)


def _records(evidence: Evidence) -> str:
    return "\n\n".join(item.text for item in evidence.items if item.is_record)


if __name__ == "__main__":
    main()
