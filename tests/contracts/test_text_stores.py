"""The promises of ``TextIndex`` and ``TextStore``, kept by every backend.

Elasticsearch is an emulator here, and the ids of its tests say so. The same tests run against a real server when
``ELASTICSEARCH_URL`` is set (and ``ELASTICSEARCH_API_KEY`` where it wants a key).
"""

import math
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from elasticsearch import Elasticsearch
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mesa_pipeline.artifacts import decode_arrays, encode_arrays, fingerprint
from mesa_pipeline.config import Bm25Settings, Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stores import Match, Place, TextStore
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.stores.elasticsearch import ElasticsearchStore

LUCENE = Bm25Settings(variant="lucene", k1=1.5, b=0.75, epsilon=0.25, tokenizer="whitespace")
OKAPI = LUCENE.model_copy(update={"variant": "okapi"})
EMULATOR, REAL = "elasticsearch-emulator", "elasticsearch-real-server"
SERVERS = [EMULATOR, pytest.param(REAL, marks=pytest.mark.real_elasticsearch)]
TEXTS = ["red key", "red door", "blue door blue", "", "red key", "שלום a.b x*y"]
PLACE = Place("any", "raw", "one", "1")

OpenStore = Callable[..., TextStore]
Search = Callable[[Sequence[str], Bm25Settings, str, int], list[Match]]


@contextmanager
def opened(backend: str, request: pytest.FixtureRequest, settings: Settings) -> Iterator[OpenStore]:
    """Opens stores on an index of its own, by ranking and namespace."""
    if backend == EMULATOR:
        url, key = request.getfixturevalue("elasticsearch_emulator"), None
    else:
        url, key = os.environ.get("ELASTICSEARCH_URL"), os.environ.get("ELASTICSEARCH_API_KEY")
        if not url:
            pytest.skip("no real Elasticsearch: set ELASTICSEARCH_URL to the address of one")
    index = f"mesa-test-{uuid.uuid4().hex}"
    server = settings.stores.elasticsearch.model_copy(update={"url": url, "index": index})
    yield lambda bm25=LUCENE, namespace="default": ElasticsearchStore(server, bm25, namespace, key)
    Elasticsearch(url, api_key=key).options(ignore_status=404).indices.delete(index=index)


@pytest.fixture(params=SERVERS)
def open_store(request: pytest.FixtureRequest, settings: Settings) -> Iterator[OpenStore]:
    with opened(request.param, request, settings) as open_store:
        yield open_store


@pytest.fixture(scope="module", params=["process", *SERVERS])
def search(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Search]:
    """Searches texts in a backend; what was searched before stays where it is."""
    if request.param == "process":
        yield search_in_process
        return
    with opened(request.param, request, settings) as open_store:

        def search_in_store(texts: Sequence[str], bm25: Bm25Settings, query: str, k: int) -> list[Match]:
            store, place = open_store(bm25), Place("any", "raw", fingerprint(list(texts)), "1")
            store.put(place, Bm25Index.build(texts, bm25))
            return store.open(place).search(query, k)

        yield search_in_store


def search_in_process(texts: Sequence[str], bm25: Bm25Settings, query: str, k: int) -> list[Match]:
    """As a memory is read: from what was stored of the index."""
    index = Bm25Index.build(texts, bm25)
    return Bm25Index.restore(index.data, decode_arrays(encode_arrays(index.arrays)), bm25).search(query, k)


def one_by_one(texts: Sequence[str], bm25: Bm25Settings, query: str, k: int) -> list[Match]:
    """The matches by definition: every text scored, sorted by score and position."""
    scores = Bm25Index.build(texts, bm25).scores(query).tolist()
    return [Match(position, scores[position]) for position in sorted(range(len(texts)), key=lambda at: (-scores[at], at))[:k]]


# Every text index

words = st.sampled_from(["red", "key", "door", "a.b", "~", "*", "שלום", "\x00", "\ud800", "x" * 3000, "é", "e\u0301"])
texts_of_few_words = st.lists(st.lists(words, max_size=5).map(" ".join), max_size=40)
texts_much_alike = st.lists(
    st.sampled_from(["red key", "key red", "red red key", "red key door", ""]), min_size=30, max_size=60
)
queries = st.lists(st.one_of(words, st.just("unknown")), max_size=6).map(" ".join)
rankings = st.builds(
    lambda variant, k1, b: LUCENE.model_copy(update={"variant": variant, "k1": k1, "b": b}),
    st.sampled_from(["lucene", "okapi"]),
    st.sampled_from([0.0, 1.2, 1.5]),
    st.sampled_from([0.0, 0.75, 1.0]),
)


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(texts_of_few_words, texts_much_alike), rankings, queries, st.sampled_from([0, 1, 3, 20, 100]))
@example(["red red", "red"], OKAPI, "red", 2)
def test_matches_are_those_of_the_definition_bit_by_bit(
    search: Search, texts: list[str], bm25: Bm25Settings, query: str, k: int
) -> None:
    assert search(texts, bm25, query, k) == one_by_one(texts, bm25, query, k)


def test_a_hand_worked_ranking(search: Search) -> None:
    length_norm = 1.5 * (0.25 + 0.75 * 2 / (7 / 3))
    key, red = math.log(1 + 2.5 / 1.5) / (1 + length_norm), math.log(1 + 1.5 / 2.5) / (1 + length_norm)
    matches = search(["red key", "red door", "blue door blue"], LUCENE, "key red red", 3)
    assert [match.position for match in matches] == [0, 1, 2]
    assert [match.score for match in matches] == pytest.approx([key + 2 * red, 2 * red, 0])


@pytest.mark.parametrize("bm25", [LUCENE, OKAPI], ids=["lucene", "okapi"])
@pytest.mark.parametrize("query", ["", "unknown", "red", "red red red", " ".join(f"word{n}" for n in range(3000)) + " red"])
def test_odd_queries(search: Search, bm25: Bm25Settings, query: str) -> None:
    assert search(TEXTS, bm25, query, 4) == one_by_one(TEXTS, bm25, query, 4)


def test_no_texts_and_empty_texts(search: Search) -> None:
    assert search([], LUCENE, "red", 3) == []
    assert search(["", ""], LUCENE, "red", 3) == [Match(0, 0.0), Match(1, 0.0)]


def test_scores_that_differ_in_their_last_bits_alone(search: Search) -> None:
    """Far less than the 9 bits that Elasticsearch ranks by: it cannot tell these texts apart."""
    texts = [f"red {'pad ' * (5000 + length)}" for length in (8, 3, 9, 1, 7, 2, 6, 4, 5, 0) * 4]
    matches = search(texts, LUCENE, "red", 5)
    assert matches == one_by_one(texts, LUCENE, "red", 5)
    assert [match.position for match in matches] == [9, 19, 29, 39, 3]


# Every store


def test_only_a_version_that_was_put_is_there(open_store: OpenStore) -> None:
    store, index = open_store(), Bm25Index.build(TEXTS, LUCENE)
    assert not store.holds(PLACE)
    with pytest.raises(ArtifactError, match="one"):
        store.open(PLACE)
    store.put(PLACE, index)
    assert store.holds(PLACE)
    assert not store.holds(PLACE._replace(version="2"))
    with pytest.raises(ArtifactError, match="mesa build"):
        store.open(PLACE._replace(version="2"))


def test_putting_twice_changes_nothing(open_store: OpenStore) -> None:
    store, index = open_store(), Bm25Index.build(TEXTS, LUCENE)
    store.put(PLACE, index)
    before = store.open(PLACE).search("red key", 9)
    store.put(PLACE, index)
    assert store.open(PLACE).search("red key", 9) == before == index.search("red key", 9)


def test_another_version_takes_the_place(open_store: OpenStore) -> None:
    store, second = open_store(), Bm25Index.build(["green door"], LUCENE)
    store.put(PLACE, Bm25Index.build(TEXTS, LUCENE))
    reader = store.open(PLACE)
    store.put(PLACE._replace(version="2"), second)
    assert not store.holds(PLACE)
    assert store.open(PLACE._replace(version="2")).search("red door", 9) == second.search("red door", 9)
    with pytest.raises(ArtifactError, match="mesa build"):
        reader.search("red", 3)


@pytest.mark.parametrize("changed", [{"k1": 1.2}, {"b": 0.5}, {"variant": "okapi"}, {"tokenizer": "words"}, {"epsilon": 0.5}])
def test_what_was_ranked_otherwise_is_not_there(open_store: OpenStore, changed: dict[str, object]) -> None:
    open_store().put(PLACE, Bm25Index.build(TEXTS, LUCENE))
    other = LUCENE.model_copy(update=changed)
    assert not open_store(other).holds(PLACE)
    open_store(other).put(PLACE, Bm25Index.build(TEXTS, other))
    assert open_store(other).open(PLACE).search("red key", 9) == Bm25Index.build(TEXTS, other).search("red key", 9)


def test_other_places_versions_and_namespaces_change_nothing(open_store: OpenStore) -> None:
    index, crowd = Bm25Index.build(TEXTS, LUCENE), Bm25Index.build(["red key red key"] * 50, LUCENE)
    open_store().put(PLACE, index)
    for number, other in enumerate(["dataset", "structure", "episode"]):
        open_store().put(PLACE._replace(**{other: f"other {number}"}), crowd)
    open_store(namespace="other").put(PLACE, crowd)
    for query in ("red", "key red", "door", "unknown"):
        assert open_store().open(PLACE).search(query, 9) == index.search(query, 9)
    assert open_store(namespace="other").open(PLACE).search("red", 60) == crowd.search("red", 60)


def test_episodes_no_longer_kept_are_gone_everywhere_and_nothing_else_is(open_store: OpenStore) -> None:
    store, index = open_store(), Bm25Index.build(TEXTS, LUCENE)
    episodes = [PLACE._replace(episode=episode) for episode in ("one", "two", "three")]
    elsewhere = [PLACE._replace(dataset="other"), PLACE._replace(structure="other")]
    for place in (*episodes, *elsewhere):
        store.put(place, index)
    open_store(namespace="other").put(PLACE, index)
    store.keep_only("any", "raw", ["two", "never put"])
    assert [store.holds(place) for place in (*episodes, *elsewhere)] == [False, True, False, True, True]
    assert open_store(namespace="other").holds(PLACE)
    store.keep_only("any", "raw", [])
    assert not any(store.holds(place) for place in episodes)
    assert all(store.holds(place) for place in elsewhere)


def test_keeping_where_nothing_was_ever_put(open_store: OpenStore) -> None:
    open_store().keep_only("any", "raw", ["one"])
    assert not open_store().holds(PLACE)


def test_threads_put_and_search_at_once(open_store: OpenStore) -> None:
    store, index = open_store(), Bm25Index.build(TEXTS, LUCENE)

    def put_and_search(number: int) -> list[Match]:
        place = PLACE._replace(episode=str(number % 3))
        store.put(place, index)
        return store.open(place).search("red key", 9)

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(put_and_search, range(18))) == [index.search("red key", 9)] * 18
