"""Recall and time of pgvector's HNSW index against exact search, there and in the process.

Usage: python benchmarks/pgvector_recall.py [--vectors N ...] [--queries N] [--workspace DIR --dataset NAME]
       [--maintenance-memory 256MB]

Each size is one place of 384 dimensions in an embedded PostgreSQL with the settings that `mesa up` gives it. Columns:

- ``put s``: seconds to copy the vectors; ``index s``: and to build the HNSW index, with its copy;
- ``vectors MB``, ``index MB``: on the server, tables with their primary key, and the HNSW index;
- ``process``, ``exact``, ``hnsw``: median milliseconds a query, asked one by one for the best five;
- ``recall@5 (N)``: share of the five best that the index finds when it is searched for N candidates (``hnsw.ef_search``).

With ``--workspace`` the vectors are those of all steps of a dataset there, in one place, and the queries are questions about
them, embedded alike. Otherwise both are made to resemble those. Of 6,233 steps in 86 AMA-Bench episodes, embedded with
all-MiniLM-L6-v2, the mean cosine of two is 0.27, of two of one episode 0.70, of a step and the one most like it 0.96; 46% have
a near copy (above 0.99), and the variance along the k-th principal component falls like 1 / (k + 2). A question's cosine to
the best step is 0.50, to the fifth 0.46, to the hundredth 0.38. So here: a part common to all steps, one for each episode of
72, and one that wanders from step to step or repeats, nearly, that of an earlier one; and questions half made of a step.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psycopg

from mesa_pipeline.artifacts import Layout, decode_arrays
from mesa_pipeline.config import PgvectorSettings, Settings, load_settings
from mesa_pipeline.services.postgres import EmbeddedPostgres
from mesa_pipeline.stages.models import embedder_opener
from mesa_pipeline.stages.storage import read_questions
from mesa_pipeline.stores import Match, Place, VectorIndex
from mesa_pipeline.stores.embedded import ArrayVectorIndex
from mesa_pipeline.stores.pgvector import PgvectorStore

DIMENSIONS, STEPS, WANTED = 384, 72, 5
COMMON, EPISODE, STEP = 0.27, 0.35, 0.38
"""Shares of the squared length."""
KEPT_OF_LAST_STEP, REPEATED, REPEAT_NOISE = 0.8, 0.32, 0.15
QUESTION_COSINE = 0.5
WIDTHS = (100, 400, 1000)


class Case(NamedTuple):
    """Vectors to search and queries to search them for, unit length, float32, shapes ``(n, 384)`` and ``(queries, 384)``."""

    vectors: np.ndarray
    queries: np.ndarray


class Megabytes(NamedTuple):
    """On the server: the tables with their primary keys, and the HNSW indexes."""

    tables: float
    indexes: float


class Searched(NamedTuple):
    """The matches of every query, and the median milliseconds that one took."""

    matches: list[list[Match]]
    milliseconds: float


def main() -> None:
    """Print one row a size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--dataset", default="ama_bench")
    parser.add_argument("--maintenance-memory", default="256MB")
    arguments = parser.parse_args()
    settings = load_settings(Path("params.yaml"), environment={})
    header = ["vectors", "put s", "vectors MB", "index s", "index MB", "process ms", "exact ms", "hnsw ms"]
    header += [f"recall@{WANTED} ({width})" for width in WIDTHS]
    print("| " + " | ".join(header) + " |", "| --- " * len(header) + "|", sep="\n", flush=True)
    memory = {"maintenance_work_mem": arguments.maintenance_memory}
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(Path(folder, "postgres"), settings=memory) as server:
        if arguments.workspace:
            cases = iter([read_case(Layout(arguments.workspace, arguments.dataset), arguments.queries, settings)])
        else:
            cases = (made_case(count, arguments.queries) for count in arguments.vectors)
        for case in cases:
            database = f"benchmark-{len(case.vectors)}"
            server.ensure_database(database)
            row = measure(case, settings.stores.pgvector, server.url(database))
            print("| " + " | ".join(row) + " |", flush=True)


def directions(generator: np.random.Generator, count: int) -> np.ndarray:
    """Unit vectors whose variance along the k-th axis falls like 1 / (k + 2)."""
    found = generator.normal(size=(count, DIMENSIONS)) / np.sqrt(np.arange(DIMENSIONS) + 2)
    return unit(found)


def made_case(vectors: int, queries: int) -> Case:
    """Vectors like those of the steps of many episodes, and of questions about them."""
    generator = np.random.default_rng(vectors)
    steps = directions(generator, vectors)
    for position in range(1, vectors):
        first = position - position % STEPS
        if position == first:
            continue
        if generator.random() < REPEATED:
            steps[position] = steps[generator.integers(first, position)] + REPEAT_NOISE * steps[position]
        else:
            steps[position] *= np.sqrt(1 - KEPT_OF_LAST_STEP**2)
            steps[position] += KEPT_OF_LAST_STEP * steps[position - 1]
    steps = unit(steps)
    episodes = np.repeat(directions(generator, vectors // STEPS + 1), STEPS, axis=0)[:vectors]
    made = unit(np.sqrt(COMMON) * directions(generator, 1) + np.sqrt(EPISODE) * episodes + np.sqrt(STEP) * steps)
    near, aside = made[generator.integers(0, vectors, queries)], directions(generator, queries)
    aside = unit(aside - np.sum(aside * near, axis=1, keepdims=True) * near)
    return Case(made, unit(QUESTION_COSINE * near + np.sqrt(1 - QUESTION_COSINE**2) * aside))


def unit(vectors: np.ndarray) -> np.ndarray:
    """The vectors at unit length."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def read_case(layout: Layout, queries: int, settings: Settings) -> Case:
    """The steps of a dataset's episodes, and some of their questions, spread over the episodes."""
    paths = sorted(layout.memory("vector", "any").parent.glob("*.npz"))
    vectors = np.concatenate([decode_arrays(path.read_bytes())["vectors"] for path in paths])
    questions = [question.text for path in paths for question in read_questions(layout, path.stem)]
    spread = questions[:: max(1, len(questions) // queries)][:queries]
    return Case(vectors, embedder_opener(settings, layout.workspace)().embed(spread))


def measure(case: Case, pgvector: PgvectorSettings, url: str) -> list[str]:
    """The cells of one row."""
    vectors, queries = case
    exact = PgvectorStore(pgvector.model_copy(update={"exact_up_to": len(vectors)}), "exact", lambda: url)
    place = Place("benchmark", "vector", str(len(vectors)), "1")
    put = seconds(lambda: exact.put(place, vectors, "made"))
    in_process = search(ArrayVectorIndex(vectors), queries)
    on_server = search(exact.open(place, "made"), queries)
    if on_server.matches != in_process.matches:
        raise AssertionError("exact search on the server differs from the process")
    exact_mb = megabytes(url).tables
    exact.keep_only("benchmark", "vector", [])
    searches: dict[int, Searched] = {}
    index = 0.0
    for width in WIDTHS:
        hnsw = pgvector.hnsw.model_copy(update={"ef_search": width})
        store = PgvectorStore(pgvector.model_copy(update={"exact_up_to": 0, "hnsw": hnsw}), "hnsw", lambda: url)
        if not searches:
            index = seconds(lambda store=store: store.put(place, vectors, "made"))  # type: ignore[misc]
        searches[width] = search(store.open(place, "made"), queries)
    index_mb = megabytes(url).indexes
    store.keep_only("benchmark", "vector", [])
    cells = [f"{len(vectors):,}", f"{put:.1f}", f"{exact_mb:.0f}", f"{index:.1f}", f"{index_mb:.0f}"]
    cells += [f"{found.milliseconds:.1f}" for found in (in_process, on_server, searches[pgvector.hnsw.ef_search])]
    return cells + [f"{recall(found.matches, in_process.matches):.3f}" for found in searches.values()]


def seconds(work: Callable[[], None]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def search(index: VectorIndex, queries: np.ndarray) -> Searched:
    """Ask one by one, after a few to warm up."""
    for query in queries[:3]:
        index.search(query[None], WANTED)
    matches, times = [], []
    for query in queries:
        started = time.perf_counter()
        matches += index.search(query[None], WANTED)
        times.append(time.perf_counter() - started)
    return Searched(matches, 1000 * float(np.median(times)))


def recall(found: Sequence[Sequence[Match]], best: Sequence[Sequence[Match]]) -> float:
    """Mean share of the best that were found."""
    pairs = [({m.position for m in some}, {m.position for m in five}) for some, five in zip(found, best, strict=True)]
    return float(np.mean([len(some & five) / len(five) for some, five in pairs]))


def megabytes(url: str) -> Megabytes:
    """What the vectors take."""
    statement = """
        SELECT coalesce(sum(pg_relation_size(c.oid)) FILTER (WHERE a.amname IS DISTINCT FROM 'hnsw'), 0)::float8,
               coalesce(sum(pg_relation_size(c.oid)) FILTER (WHERE a.amname = 'hnsw'), 0)::float8
        FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam
        WHERE c.relnamespace = 'mesa'::regnamespace AND c.relname LIKE 'vectors%'
    """
    with psycopg.connect(url) as connection:
        row = connection.execute(statement).fetchone()
    assert row is not None
    return Megabytes(row[0] / 1e6, row[1] / 1e6)


if __name__ == "__main__":
    main()
