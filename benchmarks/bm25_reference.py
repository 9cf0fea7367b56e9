"""The BM25 of this project beside rank-bm25 on R's windows of the development data: equal scores, and what they cost.

Usage: python benchmarks/bm25_reference.py [--data DIR] [--elasticsearch URL]

Both index the windows of every episode and score them for each of its questions, with the okapi variant, which is rank-bm25's.
Scores must agree within 1e-9, or the script fails. Seconds are CPU time of one thread, without that of the tokenizer, which is
the same for both.

With ``--elasticsearch`` the same questions are then searched in a server, in both variants, in a namespace that is emptied
again; matches must be equal to the bit. It prints counts and bytes, no seconds: those of an emulator mean nothing.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from rank_bm25 import BM25Okapi

from mesa_pipeline.config import Bm25Settings, Settings, load_settings
from mesa_pipeline.datasets import ama_bench, locomo
from mesa_pipeline.stores import Place
from mesa_pipeline.stores.bm25 import Bm25Index, Postings
from mesa_pipeline.stores.elasticsearch import ElasticsearchStore
from mesa_pipeline.stores.elasticsearch.documents import Address, can_be_ranked, window_actions
from mesa_pipeline.stores.tokenizers import open_tokenizer
from mesa_pipeline.structures.raw import RECORD_BREAK, split_windows
from mesa_pipeline.structures.records import serialize_step

NAMESPACE = "benchmark"
R = TypeVar("R")


@dataclass(frozen=True)
class Case:
    """An episode's windows and questions."""

    name: str
    windows: tuple[str, ...]
    questions: tuple[str, ...]


@dataclass
class Watch:
    """Adds up CPU seconds."""

    seconds: float = 0.0

    def time(self, work: Callable[[], R]) -> R:
        started = time.process_time()
        result = work()
        self.seconds += time.process_time() - started
        return result


@dataclass(frozen=True)
class Costs:
    """Of one implementation."""

    index: Watch
    query: Watch

    def row(self, name: str, windows: int, questions: int) -> str:
        per_query = 1_000 * self.query.seconds / questions
        return f"| {name} | {1_000 * self.index.seconds / windows:.2f} | {per_query:.3f} |"


def load_cases(data: Path, settings: Settings) -> dict[str, list[Case]]:
    loaded = {
        "ama_bench": ama_bench.load(data / "ama_bench" / "open_end_qa_set.jsonl", settings.datasets, False),
        "locomo": locomo.load(data / "locomo" / "locomo5.json", settings.datasets, False),
    }
    cases: dict[str, list[Case]] = {}
    for dataset, source in loaded.items():
        for episode in source.episodes:
            records = [serialize_step(step).text for step in episode.trajectory.steps]
            spans = split_windows(len(records), settings.structures.raw)
            windows = tuple(RECORD_BREAK.join(records[span.start : span.stop]) for span in spans)
            cases.setdefault(dataset, []).append(Case(episode.id, windows, tuple(q.text for q in episode.questions)))
    return cases


def compare(cases: Sequence[Case], bm25: Bm25Settings, ours: Costs, theirs: Costs) -> None:
    """Index and ask both; fails where a score differs."""
    tokenize = open_tokenizer(bm25.tokenizer)
    spaced = bm25.model_copy(update={"tokenizer": "whitespace"})
    for case in cases:
        documents = [tokenize(window) for window in case.windows]
        index = ours.index.time(lambda: Bm25Index(Postings.of(documents), spaced))  # noqa: B023
        reference = theirs.index.time(lambda: BM25Okapi(documents, k1=bm25.k1, b=bm25.b))  # noqa: B023
        for question in case.questions:
            terms = tokenize(question)
            scores = ours.query.time(lambda: index.scores(" ".join(terms)))  # noqa: B023
            expected = theirs.query.time(lambda: reference.get_scores(terms))  # noqa: B023
            np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)


def search_server(cases: Sequence[Case], dataset: str, bm25: Bm25Settings, settings: Settings) -> int:
    """Search a server for every question; fails where a match differs. Returns how many matches were compared."""
    store = ElasticsearchStore(settings.stores.elasticsearch, bm25, NAMESPACE, None)
    compared = 0
    for case in cases:
        place, index = Place(dataset, "raw", case.name, bm25.variant), Bm25Index.build(case.windows, bm25)
        store.put(place, index)
        served = store.open(place)
        for question in case.questions:
            for k in (settings.structures.raw.top_k, len(case.windows)):
                matches = served.search(question, k)
                assert matches == index.search(question, k), (case.name, question)
                compared += len(matches)
    store.keep_only(dataset, "raw", [])
    return compared


def document_bytes(cases: Sequence[Case], dataset: str, bm25: Bm25Settings) -> int:
    """Bytes of all windows' documents, as they are sent."""
    total = 0
    for case in cases:
        index = Bm25Index.build(case.windows, bm25)
        address = Address.of(NAMESPACE, Place(dataset, "raw", case.name, ""), bm25)
        total += sum(len(json.dumps(action["_source"])) for action in window_actions(address, index, can_be_ranked(index)))
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--elasticsearch", metavar="URL")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="of the episodes, every nth is searched in the server"
    )
    arguments = parser.parse_args()
    server = [f"stores.elasticsearch.url={arguments.elasticsearch}"] if arguments.elasticsearch else []
    settings = load_settings(overrides=server, environment={})
    okapi = settings.stores.bm25.model_copy(update={"variant": "okapi"})
    for dataset, cases in load_cases(arguments.data, settings).items():
        windows, questions = sum(len(case.windows) for case in cases), sum(len(case.questions) for case in cases)
        characters = sum(len(window) for case in cases for window in case.windows)
        ours, theirs = Costs(Watch(), Watch()), Costs(Watch(), Watch())
        compare(cases, okapi, ours, theirs)
        size = f"{windows} windows of {characters // windows:,} characters"
        print(f"\n{dataset}: {len(cases)} episodes, {size}, {questions} queries")
        print("| | index, s per 1,000 windows | query, s per 1,000 |\n| --- | --- | --- |")
        print(ours.row("Bm25Index", windows, questions), theirs.row("rank-bm25", windows, questions), sep="\n", flush=True)
        if not arguments.elasticsearch:
            continue
        for bm25 in (okapi, settings.stores.bm25):
            compared = search_server(cases[:: arguments.every], dataset, bm25, settings)
            size = document_bytes(cases, dataset, bm25)
            print(f"Elasticsearch, {bm25.variant}: {compared:,} matches equal to the bit; {size / windows:,.0f} bytes a window")


if __name__ == "__main__":
    main()
