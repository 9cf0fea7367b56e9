"""The promises of ``VectorIndex`` and ``VectorStore``, kept by every backend.

PostgreSQL is a real one. Where its index may miss some, equality becomes a bound on recall, over vectors in groups, as
embeddings are.
"""

import multiprocessing
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import PgvectorSettings, Settings, load_settings
from mesa_pipeline.errors import ArtifactError, MissingDependency
from mesa_pipeline.services.postgres import EmbeddedPostgres
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.models import stores_of
from mesa_pipeline.stages.publish import publish
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.storage import place_of, read_manifest
from mesa_pipeline.stages.systems import system_of
from mesa_pipeline.stores import Match, Place, VectorIndex
from mesa_pipeline.stores.embedded import ArrayVectorIndex
from mesa_pipeline.stores.pgvector import PgvectorStore
from mesa_pipeline.stores.pgvector.schema import prepare
from tests.pipeline import SMALL

REPOSITORY = Path(__file__).resolve().parents[2]
EXACT, HNSW = "pgvector", "pgvector-hnsw"
EMBEDDER = "a model"
PLACE = Place("data", "vector", "one", "1")
IDENTITY = np.eye(3, dtype=np.float32)

OpenStore = Callable[..., PgvectorStore]
Search = Callable[[np.ndarray, np.ndarray, int], list[list[Match]]]


@pytest.fixture(scope="module")
def shared_url(postgres: EmbeddedPostgres) -> str:
    """A database for tests that look into their own namespace alone."""
    postgres.ensure_database("vector-contract")
    return postgres.url("vector-contract")


@pytest.fixture
def url(postgres: EmbeddedPostgres) -> str:
    """A database that no test used."""
    name = f"vectors-{uuid.uuid4().hex[:12]}"
    postgres.ensure_database(name)
    return postgres.url(name)


def with_index_above(settings: Settings, exact_up_to: int) -> PgvectorSettings:
    return settings.stores.pgvector.model_copy(update={"exact_up_to": exact_up_to})


@pytest.fixture(params=[EXACT, HNSW])
def open_store(request: pytest.FixtureRequest, shared_url: str, settings: Settings) -> OpenStore:
    """Opens stores in namespaces that no other test uses."""
    pgvector = with_index_above(settings, 0 if request.param == HNSW else 50_000)
    prefix = uuid.uuid4().hex
    return lambda namespace="default": PgvectorStore(pgvector, f"{prefix}-{namespace}", lambda: shared_url)


def searching(store: PgvectorStore) -> Search:
    def search(vectors: np.ndarray, queries: np.ndarray, k: int) -> list[list[Match]]:
        place = PLACE._replace(version=uuid.uuid4().hex)
        store.put(place, vectors, EMBEDDER)
        return store.open(place, EMBEDDER).search(queries, k)

    return search


@pytest.fixture(scope="module", params=["process", EXACT, HNSW])
def search(request: pytest.FixtureRequest, settings: Settings) -> Search:
    """Searches vectors in a backend."""
    if request.param == "process":
        return lambda vectors, queries, k: ArrayVectorIndex(vectors).search(queries, k)
    pgvector = with_index_above(settings, 0 if request.param == HNSW else 50_000)
    url = request.getfixturevalue("shared_url")
    return searching(PgvectorStore(pgvector, uuid.uuid4().hex, lambda: url))


@pytest.fixture(scope="module")
def search_exactly(shared_url: str, settings: Settings) -> Search:
    return searching(PgvectorStore(with_index_above(settings, 50_000), uuid.uuid4().hex, lambda: shared_url))


def in_groups(generator: np.random.Generator, vectors: int, dimensions: int = 64) -> np.ndarray:
    """Unit vectors round a few centres, as those of similar steps are."""
    centres = generator.normal(size=(20, dimensions))
    found = centres[generator.integers(0, 20, vectors)] + 0.6 * generator.normal(size=(vectors, dimensions))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


# Every index


def test_whole_numbers_are_ranked_as_by_hand(search):
    vectors = np.array([[1, 0], [3, 4], [0, 0], [-1, 2], [3, 4]], dtype=np.float32)
    queries = np.array([[2, 1], [0, 0]], dtype=np.float32)
    expected = [Match(1, 10.0), Match(4, 10.0), Match(0, 2.0), Match(2, 0.0), Match(3, 0.0)]
    assert search(vectors, queries, 9) == [expected, [Match(position, 0.0) for position in range(5)]]
    assert search(vectors, queries, 2)[0] == expected[:2]


def test_equal_vectors_stand_in_order_of_position(search):
    vectors = np.repeat(np.array([[0.6, 0.8]], dtype=np.float32), 40, axis=0)
    assert [match.position for match in search(vectors, vectors[:1], 5)[0]] == [0, 1, 2, 3, 4]


def test_no_vectors_no_queries_and_nothing_wanted_give_nothing(search):
    assert search(np.zeros((0, 3), dtype=np.float32), IDENTITY[:2], 5) == [[], []]
    assert search(IDENTITY, np.zeros((0, 3), dtype=np.float32), 5) == []
    assert search(IDENTITY, IDENTITY[:1], 0) == [[]]


def test_most_of_the_nearest_are_found(search):
    generator = np.random.default_rng(3)
    vectors, queries = in_groups(generator, 1500), in_groups(generator, 30)
    found, exact = search(vectors, queries, 5), ArrayVectorIndex(vectors).search(queries, 5)
    shared = [len({m.position for m in some} & {m.position for m in best}) for some, best in zip(found, exact, strict=True)]
    assert sum(shared) >= 0.95 * 5 * 30
    scores = {(q, m.position): m.score for q, best in enumerate(exact) for m in best}
    assert all(scores.get((q, m.position), m.score) == m.score for q, some in enumerate(found) for m in some)


def test_more_may_be_wanted_than_an_index_can_be_searched_for(search):
    vectors = in_groups(np.random.default_rng(4), 1100, 8)
    assert search(vectors, vectors[:1], 1100) == ArrayVectorIndex(vectors).search(vectors[:1], 1100)


# Equality of exact search with the process

noise = st.sampled_from([0.0, 1e-8, 3e-7, 5e-7, 1e-6, 1e-5])
scales = st.sampled_from([1e-20, 1.0, 1e6])


@st.composite
def near_ties(draw: st.DrawFn) -> np.ndarray:
    """Many vectors that are equal, or nearly so, at any scale."""
    dimensions = draw(st.integers(1, 70))
    elements = st.floats(-1, 1, width=32)
    bases = draw(arrays.arrays(np.float32, (draw(st.integers(1, 3)), dimensions), elements=elements))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    chosen = bases[generator.integers(0, len(bases), draw(st.integers(1, 60)))].astype(np.float64)
    return ((chosen + draw(noise) * generator.normal(size=chosen.shape)) * draw(scales)).astype(np.float32)


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(near_ties(), st.sampled_from([1, 2, 5, 30]))
def test_exact_search_finds_what_the_process_finds_bit_by_bit(search_exactly, vectors, k):
    queries = np.concatenate((vectors[:2], vectors[-1:] * np.float32(0.3)))
    assert search_exactly(vectors, queries, k) == ArrayVectorIndex(vectors).search(queries, k)


def test_the_order_is_that_of_exact_sums_where_float32_sums_have_another(search_exactly):
    """Large terms cancel, so that float32 sums are off by more than the vectors differ."""
    generator = np.random.default_rng(5)
    half = generator.normal(size=(200, 192)).astype(np.float32) * 100
    small = generator.normal(size=(200, 1)).astype(np.float32) * np.float32(1e-4)
    vectors, query = np.hstack((half, half, small)), np.hstack((np.ones(192), -np.ones(192), [1])).astype(np.float32)
    float32_order = np.argsort(-(vectors @ query), kind="stable")[:5].tolist()
    exact = ArrayVectorIndex(vectors).search(query[None], 5)
    assert [match.position for match in exact[0]] != float32_order
    assert search_exactly(vectors, query[None], 5) == exact


# Every store


def best(index: VectorIndex, query: np.ndarray) -> int:
    return index.search(query[None], 1)[0][0].position


def test_what_is_put_is_held_and_opened(open_store):
    store = open_store()
    assert store.name == "pgvector"
    assert not store.holds(PLACE)
    with pytest.raises(ArtifactError, match="lacks the vector vectors of episode 'one'"):
        store.open(PLACE, EMBEDDER)
    store.put(PLACE, IDENTITY, EMBEDDER)
    assert store.holds(PLACE)
    assert best(store.open(PLACE, EMBEDDER), IDENTITY[2]) == 2


def test_a_version_that_is_there_is_left_alone_and_another_one_replaces_it(open_store):
    store = open_store()
    store.put(PLACE, IDENTITY, EMBEDDER)
    opened = store.open(PLACE, EMBEDDER)
    store.put(PLACE, IDENTITY[::-1], EMBEDDER)
    assert best(opened, IDENTITY[2]) == 2
    newer = PLACE._replace(version="2")
    store.put(newer, IDENTITY[::-1], EMBEDDER)
    assert (store.holds(PLACE), store.holds(newer)) == (False, True)
    assert best(store.open(newer, EMBEDDER), IDENTITY[2]) == 0
    with pytest.raises(ArtifactError):
        store.open(PLACE, EMBEDDER)
    with pytest.raises(ArtifactError, match="replaced while they were searched"):
        opened.search(IDENTITY, 1)


def test_other_episodes_are_deleted_and_nothing_else(open_store):
    store, other = open_store(), open_store("other")
    places = [PLACE._replace(episode=episode) for episode in ("one", "two", "three")]
    places += [PLACE._replace(dataset="more"), PLACE._replace(structure="temporal")]
    for place in places:
        store.put(place, IDENTITY, EMBEDDER)
        other.put(place, IDENTITY[::-1], EMBEDDER)
    store.keep_only("data", "vector", ["two", "unknown"])
    assert [store.holds(place) for place in places] == [False, True, False, True, True]
    assert all(other.holds(place) for place in places)
    assert best(other.open(PLACE, EMBEDDER), IDENTITY[2]) == 0
    store.keep_only("data", "vector", [])
    assert [store.holds(place) for place in places] == [False, False, False, True, True]


def test_another_embedder_is_refused_and_both_are_named(open_store):
    store = open_store()
    store.put(PLACE, IDENTITY, "model A")
    for use in (lambda: store.open(PLACE, "model B"), lambda: store.put(PLACE, IDENTITY, "model B")):
        with pytest.raises(ArtifactError, match=r"'model A' .* 'model B'"):
            use()


def test_queries_of_other_dimensions_are_refused(open_store):
    store = open_store()
    store.put(PLACE, IDENTITY, EMBEDDER)
    with pytest.raises(ArtifactError, match="the query has 2 dimensions, the stored vectors have 3"):
        store.open(PLACE, EMBEDDER).search(np.ones((1, 2), dtype=np.float32), 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_what_is_no_vector_is_refused_and_replaces_nothing(open_store, bad):
    store = open_store()
    store.put(PLACE, IDENTITY, EMBEDDER)
    broken = np.array([[1, 0, 0], [0, bad, 0]], dtype=np.float32)
    with pytest.raises(ArtifactError, match="not finite"):
        store.put(PLACE._replace(version="2"), broken, EMBEDDER)
    assert store.holds(PLACE)
    with pytest.raises(ArtifactError, match="not finite"):
        store.open(PLACE, EMBEDDER).search(broken, 1)


def test_names_may_hold_anything_a_name_can(open_store):
    store = open_store()
    odd = Place("d'; DROP SCHEMA mesa CASCADE; --", 'v"%s', "{}\\N\n\u202eepisode", "1")
    store.put(odd, IDENTITY, 'a "model" %s')
    assert store.holds(odd)
    assert best(store.open(odd, 'a "model" %s'), IDENTITY[1]) == 1


def test_threads_share_a_store(open_store):
    store = open_store()
    places = [PLACE._replace(episode=str(number % 4)) for number in range(16)]

    def use(place: Place) -> int:
        store.put(place, IDENTITY, EMBEDDER)
        return best(store.open(place, EMBEDDER), IDENTITY[int(place.episode) % 3])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, places)) == [int(place.episode) % 3 for place in places]


# What the settings decide


def test_the_settings_say_from_where_on_an_index_is_used(shared_url, settings):
    namespace = uuid.uuid4().hex
    exact, indexed = (PgvectorStore(with_index_above(settings, n), namespace, lambda: shared_url) for n in (3, 2))
    assert (exact.approximation(3), exact.approximation(4)) == (None, "hnsw m=16 ef_construction=64 ef_search=1000")
    exact.put(PLACE, IDENTITY, EMBEDDER)
    assert not indexed.holds(PLACE), "the index that is wanted now is not there"
    with pytest.raises(ArtifactError, match="run `mesa build`"):
        indexed.open(PLACE, EMBEDDER)
    indexed.put(PLACE, IDENTITY, EMBEDDER)
    assert indexed.holds(PLACE)
    assert exact.holds(PLACE), "vectors with an index can be searched exactly, too"
    assert best(exact.open(PLACE, EMBEDDER), IDENTITY[2]) == 2


def test_deleting_leaves_no_table_behind(url, settings):
    store = PgvectorStore(with_index_above(settings, 2), "one", lambda: url)
    store.put(PLACE, IDENTITY, EMBEDDER)
    store.put(PLACE._replace(version="2"), IDENTITY, EMBEDDER)
    store.put(PLACE._replace(episode="small"), IDENTITY[:2], EMBEDDER)
    with psycopg.connect(url, autocommit=True) as connection:
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'mesa' AND tablename LIKE 'vectors\\_%'"
        assert connection.execute(tables).fetchone() == (1,)
        store.keep_only("data", "vector", [])
        assert connection.execute(tables).fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM mesa.vectors").fetchone() == (0,)


# Faults


def test_many_that_start_at_once_make_the_tables_once(url, settings):
    def put(number: int) -> bool:
        store = PgvectorStore(settings.stores.pgvector, "one", lambda: url)
        store.put(PLACE._replace(episode=str(number)), IDENTITY, EMBEDDER)
        return store.holds(PLACE._replace(episode=str(number)))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(put, range(8)))


def test_a_dropped_connection_is_replaced(url, settings):
    store = PgvectorStore(settings.stores.pgvector, "one", lambda: url)
    store.put(PLACE, IDENTITY, EMBEDDER)
    index = store.open(PLACE, EMBEDDER)
    for use in (lambda: store.holds(PLACE), lambda: best(index, IDENTITY[2]) == 2):
        with psycopg.connect(url, autocommit=True) as other:
            ended = other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mesa'")
            assert ended.fetchall()
        assert use()


def test_a_forked_process_has_connections_of_its_own(url, settings):
    store = PgvectorStore(settings.stores.pgvector, "one", lambda: url)
    store.put(PLACE, IDENTITY, EMBEDDER)

    def use() -> None:
        os._exit(0 if store.holds(PLACE) and best(store.open(PLACE, EMBEDDER), IDENTITY[1]) == 1 else 1)

    children = [multiprocessing.get_context("fork").Process(target=use) for _ in range(3)]
    for child in children:
        child.start()
    assert all(store.holds(PLACE) for _ in range(20))
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert store.holds(PLACE)


LARGE_PUT = """
import sys
from pathlib import Path
import numpy as np
from mesa_pipeline.config import load_settings
from mesa_pipeline.stores import Place
from mesa_pipeline.stores.pgvector import PgvectorStore
from mesa_pipeline.stores.pgvector.schema import prepare
settings = load_settings(Path("params.yaml"), environment={}).stores.pgvector
store = PgvectorStore(settings.model_copy(update={"exact_up_to": 10**6}), "one", lambda: sys.argv[1])
store.put(Place("data", "vector", "one", "2"), np.ones((100_000, 100), dtype=np.float32), "a model")
"""


def test_a_put_that_is_killed_leaves_nothing_of_it(url, settings):
    store = PgvectorStore(settings.stores.pgvector, "one", lambda: url)
    store.put(PLACE, IDENTITY, EMBEDDER)
    copying = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'COPY mesa.vectors%'"
    putting = subprocess.Popen([sys.executable, "-c", LARGE_PUT, url], cwd=REPOSITORY)
    try:
        with psycopg.connect(url, autocommit=True) as other:
            deadline = time.monotonic() + 120
            while other.execute(f"{copying} AND state = 'active'").fetchone() == (0,):
                assert putting.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            putting.kill()
            putting.wait()
            while other.execute(copying).fetchone() != (0,):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert other.execute("SELECT count(*) FROM mesa.vectors").fetchone() == (3,)
    finally:
        putting.kill()
        putting.wait()
    assert store.holds(PLACE)
    assert not store.holds(PLACE._replace(version="2"))


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://mesa:hunter2@127.0.0.1:1/mesa",
        "postgresql+psycopg2://mesa:hun%2Fter2@127.0.0.1:1/mesa",
        "postgresql://mesa:hun/ter2@127.0.0.1:1/mesa",
        "postgresql://mesa:hun%ter2@127.0.0.1:1/mesa",
        "postgresql://mesa:hun%00ter2@127.0.0.1:1/mesa",
        "postgresql://mesa:hun ter2@127.0.0.1:1/mesa",
        "postgresql://mesa:x@hunter2@127.0.0.1:1/mesa",
        "postgresql://mesa@127.0.0.1:1/mesa?password=hunter2&nonsense=1",
        "host=127.0.0.1 port=1 password='hunter2",
        "postgresql://mesa:@127.0.0.1:hunter2/mesa",
        "hunter2",
    ],
)
def test_a_server_that_is_not_there_is_said_with_a_remedy_and_without_a_password(settings, address):
    store = PgvectorStore(settings.stores.pgvector, "one", lambda: address)
    uses = (
        lambda: store.holds(PLACE),
        lambda: store.put(PLACE, IDENTITY, EMBEDDER),
        lambda: store.open(PLACE, EMBEDDER),
        lambda: store.keep_only("data", "vector", []),
    )
    for use in uses:
        with pytest.raises(MissingDependency, match=r"`mesa up`.*MESA_POSTGRES_URL.*stores\.vectors to files") as raised:
            use()
        told = f"{raised.value} {raised.value.__cause__!r}"
        assert not any(piece in told for piece in ("hunter2", "ter2", "hun"))


def test_what_the_server_forbids_is_said_with_a_remedy_that_works(url, settings):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
    store = PgvectorStore(settings.stores.pgvector, "one", lambda: url.replace("mesa@", "guest@"))
    with pytest.raises(MissingDependency, match="`CREATE EXTENSION vector; CREATE SCHEMA mesa AUTHORIZATION <user>`"):
        store.holds(PLACE)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector; CREATE SCHEMA mesa AUTHORIZATION guest")
    store.put(PLACE, IDENTITY, EMBEDDER)
    assert best(store.open(PLACE, EMBEDDER), IDENTITY[1]) == 1


class WithoutPgvector:
    """A connection to a server on which the extension is not installed: it is asked for one that is not."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, *rest: object) -> psycopg.Cursor:
        return self._connection.execute(statement.replace("EXISTS vector", "EXISTS not_installed"), *rest)


def test_a_server_without_pgvector_is_said_with_a_remedy(url):
    with (
        pytest.raises(MissingDependency, match=r"has no pgvector: install .* or set stores\.vectors to files"),
        psycopg.connect(url) as connection,
    ):
        prepare(WithoutPgvector(connection))


def test_tables_of_another_version_are_refused(url, settings):
    PgvectorStore(settings.stores.pgvector, "one", lambda: url).holds(PLACE)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE mesa.vector_schema SET version = 99")
    with pytest.raises(ArtifactError, match=r"version 99, this program uses 1; .*`DROP SCHEMA mesa CASCADE`"):
        PgvectorStore(settings.stores.pgvector, "one", lambda: url).holds(PLACE)


# The stages


def tiny(episodes: int, *more: str) -> Settings:
    sizes = (f"datasets.synthetic.episodes={episodes}", "datasets.synthetic.steps=10", "datasets.synthetic.questions=3")
    return load_settings(REPOSITORY / "params.yaml", (*SMALL, *sizes, *more), {})


@pytest.fixture
def served(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], StageContext]]:
    monkeypatch.setenv("MESA_POSTGRES_URL", url)
    layout = Layout(tmp_path / "served", "synthetic")
    yield lambda episodes: StageContext(layout, tiny(episodes, "stores.vectors=pgvector"))


def test_the_stages_give_the_same_evidence_from_a_server_byte_by_byte(served, tmp_path):
    files = StageContext(Layout(tmp_path / "files", "synthetic"), tiny(3))
    for context in (files, served(3)):
        ingest(context)
        build(context, "V")
        retrieve(context, "V")
    one, other = (context.layout.evidence("vector", "any").parent for context in (files, served(3)))
    written = {path.name: path.read_bytes() for path in one.glob("*.jsonl")}
    assert len(written) == 3
    assert written == {path.name: path.read_bytes() for path in other.glob("*.jsonl")}


def test_building_again_publishes_nothing_and_vanished_episodes_leave_the_server(served, url):
    context = served(3)
    ingest(context)
    build(context, "V")
    manifest = read_manifest(context.layout)
    assert publish(context, manifest, "V").made == 0
    store = stores_of(context.settings, context.layout.workspace).vectors
    structure = system_of(context.settings, context.layout, "V")
    places = [place_of(context.layout, structure, entry) for entry in manifest.episodes]
    assert [store.holds(place) for place in places] == [True, True, True]
    store.keep_only("synthetic", "vector", [places[0].episode])
    assert publish(context, manifest, "V").made == 2, "what the server lost is put there again"
    fewer = served(2)
    ingest(fewer)
    build(fewer, "V")
    kept = {place_of(fewer.layout, structure, entry) for entry in read_manifest(fewer.layout).episodes}
    with psycopg.connect(url) as connection:
        there = {row[0] for row in connection.execute("SELECT episode FROM mesa.places").fetchall()}
    assert there == {place.episode for place in kept}
    assert len(there) == 2
