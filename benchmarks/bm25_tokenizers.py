"""Evidence recall of BM25 by tokenizer, variant, k1 and b on the development data.

Usage: python benchmarks/bm25_tokenizers.py [--data DIR] [--grid TOKENIZER ...]

Without ``--grid`` every tokenizer runs with the settings' variant, k1 and b; with it, the tokenizers named run over the grid.
Columns, all in percent:

- ``locomo R@3``, ``locomo T@5``: share of a question's annotated steps inside the windows R returns, among the best five steps;
- ``ama R@3``, ``ama T@5``: the same for the steps an AMA-Bench question names, after the references were cut out of it;
- ``named R@3``: the same with the question left whole, so that its numbers can match the "Step N" headers;
- ``answer R@3``: share of the words of the reference answer inside the windows R returns for the whole question.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mesa_pipeline.config import Bm25Settings, Settings, load_settings
from mesa_pipeline.datasets import ama_bench, locomo
from mesa_pipeline.stores.bm25 import Bm25Index, Postings
from mesa_pipeline.stores.tokenizers import STOP_WORDS, TOKENIZERS, split_words
from mesa_pipeline.structures.raw import Window, split_windows
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.structures.step_references import parse_references
from mesa_pipeline.types import Episode

MAX_TARGETS = 10
COLUMNS = ("locomo R@3", "locomo T@5", "ama R@3", "ama T@5", "named R@3", "answer R@3")
GRID_K1 = (0.9, 1.2, 1.5, 2.0)
GRID_B = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Query:
    """One search and what it ought to find: step positions, or words of the reference answer; and the columns it counts in."""

    column: str
    text: str
    step_column: str | None = None
    targets: frozenset[int] = frozenset()
    words: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    """An episode prepared for searching."""

    records: tuple[str, ...]
    step_words: tuple[frozenset[str], ...]
    windows: tuple[Window, ...]
    queries: tuple[Query, ...]


@dataclass(frozen=True)
class EpisodePostings:
    steps: Postings
    windows: Postings


class Recall(NamedTuple):
    column: str
    value: float


def prepare(episode: Episode, settings: Settings) -> Case:
    steps = episode.trajectory.steps
    records = tuple(serialize_step(step).text for step in steps)
    queries = tuple(locomo_queries(episode) if episode.dataset == "locomo" else ama_queries(episode))
    words = tuple(frozenset(split_words(record)) for record in records)
    return Case(records, words, split_windows(len(steps), settings.structures.raw), queries)


def locomo_queries(episode: Episode) -> Iterator[Query]:
    for question in episode.questions:
        if question.annotated_steps:
            yield Query("locomo R@3", question.text, "locomo T@5", frozenset(question.annotated_steps))


def ama_queries(episode: Episode) -> Iterator[Query]:
    for question in episode.questions:
        references = parse_references(question.text, episode.trajectory.last_index)
        targets = frozenset(references.indices)
        if 0 < len(targets) <= MAX_TARGETS:
            masked = question.text
            for reference in reversed(references.found):
                masked = masked[: reference.start] + " " + masked[reference.end :]
            yield Query("ama R@3", masked, "ama T@5", targets)
            yield Query("named R@3", question.text, targets=targets)
        words = frozenset(split_words(question.answer or "")) - STOP_WORDS
        if words:
            yield Query("answer R@3", question.text, words=words)


def top_positions(index: Bm25Index, query: str, k: int) -> list[int]:
    matches = index.search(query, k)
    return [match.position for match in matches if match.score > 0] or [match.position for match in matches[:1]]


def measure_case(case: Case, postings: EpisodePostings, bm25: Bm25Settings, settings: Settings) -> Iterator[Recall]:
    window_index = Bm25Index(postings.windows, bm25)
    step_index = Bm25Index(postings.steps, bm25)
    for query in case.queries:
        chosen = [case.windows[at] for at in top_positions(window_index, query.text, settings.structures.raw.top_k)]
        held = {position for window in chosen for position in range(window.start, window.stop)}
        if query.words:
            seen = frozenset().union(*(case.step_words[position] for position in held))
            yield Recall(query.column, len(query.words & seen) / len(query.words))
            continue
        yield Recall(query.column, len(query.targets & held) / len(query.targets))
        if query.step_column:
            best = set(top_positions(step_index, query.text, settings.structures.temporal.top_k))
            yield Recall(query.step_column, len(query.targets & best) / len(query.targets))


def count_terms(case: Case, tokenizer: str) -> EpisodePostings:
    terms = [TOKENIZERS[tokenizer](record) for record in case.records]
    windows = [[term for step in terms[window.start : window.stop] for term in step] for window in case.windows]
    return EpisodePostings(Postings.of(terms), Postings.of(windows))


def measure(cases: Sequence[Case], tokenizer: str, variants: Sequence[Bm25Settings], settings: Settings) -> None:
    sums = [dict.fromkeys(COLUMNS, 0.0) for _ in variants]
    counts = dict.fromkeys(COLUMNS, 0)
    for case in cases:
        postings = count_terms(case, tokenizer)
        for number, bm25 in enumerate(variants):
            for recall in measure_case(case, postings, bm25, settings):
                sums[number][recall.column] += recall.value
                counts[recall.column] += number == 0
    for bm25, total in zip(variants, sums, strict=True):
        recalls = [100 * total[column] / max(counts[column], 1) for column in COLUMNS]
        cells = [tokenizer, bm25.variant, f"{bm25.k1:g}", f"{bm25.b:g}", *(f"{recall:.1f}" for recall in recalls)]
        print("| " + " | ".join([*cells, f"{np.mean(recalls):.2f}"]) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--grid", nargs="*", default=[], metavar="TOKENIZER")
    arguments = parser.parse_args()
    settings = load_settings(environment={})
    loaded = [
        ama_bench.load(arguments.data / "ama_bench" / "open_end_qa_set.jsonl", settings.datasets, False),
        locomo.load(arguments.data / "locomo" / "locomo5.json", settings.datasets, False),
    ]
    cases = [prepare(episode, settings) for source in loaded for episode in source.episodes]
    print("| tokenizer | variant | k1 | b | " + " | ".join(COLUMNS) + " | mean |")
    print("|" + " --- |" * (len(COLUMNS) + 5))
    base = settings.stores.bm25
    grid = [(variant, k1, b) for variant in ("okapi", "lucene") for k1 in GRID_K1 for b in GRID_B]
    for tokenizer in arguments.grid or TOKENIZERS:
        choices = grid if arguments.grid else [(variant, base.k1, base.b) for variant in ("okapi", "lucene")]
        changes = [{"tokenizer": tokenizer, "variant": variant, "k1": k1, "b": b} for variant, k1, b in choices]
        measure(cases, tokenizer, [base.model_copy(update=change) for change in changes], settings)


if __name__ == "__main__":
    main()
