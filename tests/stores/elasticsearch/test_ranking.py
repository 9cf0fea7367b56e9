"""Exact ranks from approximate scores: what is asked, when it is settled, and a server that is not as good as its word."""

import json
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.stores.elasticsearch.ranking import MAX_FEATURES, Candidate, best, exact_score, is_settled
from tests.elasticsearch_emulator import Exchange, Proxy
from tests.stores.elasticsearch.conftest import LUCENE, OKAPI, PLACE, OpenStore


def kept_bits(value: float) -> float:
    """A number as Lucene's feature fields keep it: float32 without its last 15 bits."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return float(struct.unpack("<f", struct.pack("<I", bits >> 15 << 15))[0])


positive = st.floats(1e-6, 1e3)


@given(st.lists(st.lists(positive, min_size=1, max_size=4), min_size=1, max_size=40), st.integers(1, 5), st.integers(1, 40))
def test_what_is_settled_is_right(windows: list[list[float]], k: int, size: int) -> None:
    """Windows by Lucene's arithmetic: those seen are ranked as all are, whenever that is said to be settled."""
    every = [Candidate(position, sum(map(kept_bits, terms)), sum(terms)) for position, terms in enumerate(windows)]
    seen = sorted(every, key=lambda candidate: (-candidate.approximate, candidate.position))[:size]
    matches = best(seen, k)
    if len(matches) == k and is_settled(seen, matches[-1].score):
        assert matches == best(every, k)


def test_a_clear_distance_is_settled_and_a_tie_is_not() -> None:
    found = [Candidate(0, 3.0, 3.0), Candidate(1, 2.0, 2.004), Candidate(2, 1.0, 1.0)]
    assert is_settled(found, 2.004)
    assert not is_settled(found, 1.0)
    assert not is_settled(found, 1.007)


def test_where_the_rest_shares_nothing_with_the_query_all_is_settled() -> None:
    assert is_settled([Candidate(4, 3.0, 3.0), Candidate(0, 0.0, 0.0)], 0.0)


def test_a_server_whose_scores_are_not_what_they_should_be_settles_nothing() -> None:
    assert not is_settled([Candidate(0, 3.0, 3.0), Candidate(1, 1.0, 2.0), Candidate(2, 0.5, 0.5)], 3.0)
    assert not is_settled([Candidate(0, 3.0, 3.0), Candidate(1, 0.0, 2.0)], 3.0)


def test_scores_are_added_up_in_the_order_of_the_query() -> None:
    impacts = {"a": 0.1, "b": 0.2, "c": 0.3}
    source = {"exact": {name: impact.hex() for name, impact in impacts.items()}}
    assert exact_score({"a": 1, "b": 1, "c": 1}, source) == 0.1 + 0.2 + 0.3 == 0.6000000000000001
    assert exact_score({"c": 1, "b": 1, "a": 1}, source) == 0.3 + 0.2 + 0.1 == 0.6
    assert exact_score({"unknown": 9, "a": 3}, source) == 3 * 0.1
    assert exact_score({"a": 1}, {}) == 0.0


def searched(open_store: OpenStore, texts: Sequence[str], query: str, k: int, bm25=LUCENE) -> None:
    """Search in the store, and hold the matches to those in the process."""
    store, index = open_store(bm25), Bm25Index.build(texts, bm25)
    store.put(PLACE, index)
    assert store.open(PLACE).search(query, k) == index.search(query, k)


def test_what_is_asked_of_the_server(proxy: Proxy, open_store: OpenStore) -> None:
    searched(open_store, ["red key", "blue a.b"], "red a.b red", 1)
    (asked,) = proxy.to("_search")
    query = asked.body["query"]["bool"]
    vector = query["should"][0]["sparse_vector"]
    assert vector["prune"] is False
    assert sorted(vector["query_vector"].values()) == [1.0, 2.0]
    assert b'"red":2.0' in asked.content  # as a floating-point number: a whole one is an error for some versions
    assert {next(iter(clause["term"])) for clause in query["filter"]} == {"kind", "place", "version"}
    assert query["minimum_should_match"] == 0
    assert len(asked.body["_source"]["includes"]) == 2
    assert "allow_partial_search_results=false" in asked.path


def test_few_windows_are_fetched_where_the_best_stand_out(proxy: Proxy, open_store: OpenStore) -> None:
    searched(open_store, [f"red {'pad ' * length}" for length in range(0, 900, 3)], "red", 3)
    assert [asked.body["size"] for asked in proxy.to("_search")] == [16]


def test_more_windows_are_fetched_until_no_tie_is_left(proxy: Proxy, open_store: OpenStore) -> None:
    searched(open_store, ["red key"] * 50 + ["red"] + ["blue"] * 50, "red", 3)
    assert [asked.body["size"] for asked in proxy.to("_search")] == [16, 64]


def test_very_many_equal_windows_are_read_page_by_page(proxy: Proxy, open_store: OpenStore) -> None:
    searched(open_store, ["red key"] * 1100 + ["red"], "red", 3)
    assert [asked.body["size"] for asked in proxy.to("_search")] == [16, 64, 256, 200, 200, 200, 200, 200, 200]


def test_a_query_of_too_many_terms_reads_all_windows(proxy: Proxy, open_store: OpenStore) -> None:
    query = " ".join(f"w{number}" for number in range(MAX_FEATURES + 1))
    searched(open_store, ["red key", "w3 w4", "w999"], query, 2)
    assert all("should" not in asked.body["query"]["bool"] for asked in proxy.to("_search"))


def test_windows_with_negative_impacts_are_all_read(proxy: Proxy, open_store: OpenStore) -> None:
    searched(open_store, ["red", "red red", "red"], "red", 2, OKAPI)
    assert all("should" not in asked.body["query"]["bool"] for asked in proxy.to("_search"))
    assert not any("impacts" in line for asked in proxy.to("_bulk") for line in asked.lines)


def test_a_query_without_terms_asks_nothing(proxy: Proxy, open_store: OpenStore) -> None:
    searched(open_store, ["red", "blue"], "  ", 2)
    assert not proxy.to("_search")


@pytest.mark.parametrize("dropped", ["red", "key", "zzz"])
def test_a_server_that_drops_a_term_is_found_out(proxy: Proxy, open_store: OpenStore, dropped: str) -> None:
    """As token pruning does, where it is on."""

    def prune(exchange: Exchange) -> None:
        body = exchange.asked.body
        if "should" in body["query"]["bool"]:
            body["query"]["bool"]["should"][0]["sparse_vector"]["query_vector"].pop(dropped, None)
        exchange.send(exchange.forward(json.dumps(body).encode()))

    proxy.acts["_search"], proxy.lasting = [prune], {"_search"}
    texts = [f"red key {'pad ' * number}" for number in range(60)] + ["red red red", "key key key"] * 10
    searched(open_store, texts, "red key", 3)


def test_windows_that_vanish_are_missed(proxy: Proxy, open_store: OpenStore) -> None:
    store, index = open_store(), Bm25Index.build(["red", "blue", "red key"], LUCENE)
    store.put(PLACE, index)
    reader = store.open(PLACE)
    store.keep_only(PLACE.dataset, PLACE.structure, [])
    with pytest.raises(ArtifactError, match="0 of 3 windows"):
        reader.search("red", 2)
