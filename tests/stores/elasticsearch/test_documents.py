"""What is written: names that any server takes, addresses that tell memories apart, impacts that add up to scores."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.config import Bm25Settings
from mesa_pipeline.stores import Place
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.stores.elasticsearch.documents import (
    Address,
    can_be_ranked,
    feature_name,
    others_in_scope,
    window_actions,
    window_impacts,
)

LUCENE = Bm25Settings(variant="lucene", k1=1.5, b=0.75, epsilon=0.25, tokenizer="whitespace")
OKAPI = LUCENE.model_copy(update={"variant": "okapi"})
PLACE = Place("any", "raw", "one", "1")
anything = st.text(st.characters(exclude_categories=()), max_size=60)


@given(anything)
def test_a_feature_name_has_no_dots_and_bounded_length(term: str) -> None:
    assert re.fullmatch(r"[a-z0-9_~]{1,40}", feature_name(term))


@given(st.lists(anything, unique=True))
def test_different_terms_have_different_names(terms: list[str]) -> None:
    assert len({feature_name(term) for term in terms}) == len(terms)


def test_plain_terms_can_be_read() -> None:
    assert feature_name("step_2") == "step_2"
    assert feature_name("a.b").startswith("~")


@pytest.mark.parametrize("query", ["red", "key red red", "door unknown", "a.b"])
@pytest.mark.parametrize("bm25", [LUCENE, OKAPI])
def test_impacts_add_up_to_scores(bm25: Bm25Settings, query: str) -> None:
    index = Bm25Index.build(["red key", "", "red red door", "a.b", "red"], bm25)
    added = [sum(impacts.get(feature_name(term), 0.0) for term in query.split()) for impacts in window_impacts(index)]
    np.testing.assert_allclose(added, index.scores(query), rtol=1e-12, atol=1e-15)


def test_okapi_is_ranked_by_features_only_without_negative_impacts() -> None:
    assert can_be_ranked(Bm25Index.build(["red key", "red door"], LUCENE))
    assert can_be_ranked(Bm25Index.build(["red key", "blue door", "green", "box"], OKAPI))
    assert not can_be_ranked(Bm25Index.build(["red", "red red"], OKAPI))
    assert can_be_ranked(Bm25Index.build([], OKAPI))


def test_a_window_has_its_own_id_and_no_feature_that_is_refused() -> None:
    address = Address.of("default", PLACE, LUCENE)
    actions = list(window_actions(address, Bm25Index.build(["red key", "", "red"], LUCENE), ranked=True))
    assert len({action["_id"] for action in actions}) == 3
    assert [action["_source"]["position"] for action in actions] == [0, 1, 2]
    assert "impacts" not in actions[1]["_source"]
    for action in actions[::2]:
        source = action["_source"]
        assert all(impact > 0 for impact in source["impacts"].values())
        assert {name: float.fromhex(text) for name, text in source["exact"].items()} == source["impacts"]


@pytest.mark.parametrize("part", PLACE._fields)
def test_every_part_of_a_place_tells_memories_apart(part: str) -> None:
    one, other = Address.of("a", PLACE, LUCENE), Address.of("a", PLACE._replace(**{part: "other"}), LUCENE)
    assert (one.place != other.place) == (part != "version")
    assert (one.version != other.version) == (part == "version")
    assert (one.scope != other.scope) == (part in {"dataset", "structure"})


def test_namespaces_and_rankings_tell_memories_apart() -> None:
    one = Address.of("a", PLACE, LUCENE)
    assert Address.of("b", PLACE, LUCENE).place != one.place
    for changed in ({"k1": 1.4}, {"b": 0.5}, {"variant": "okapi"}, {"tokenizer": "words"}, {"epsilon": 0.5}):
        assert Address.of("a", PLACE, LUCENE.model_copy(update=changed)).version != one.version


def test_parts_of_a_place_do_not_run_together() -> None:
    one, other = Place("a", "b", "c", "1"), Place("a", "bc", "", "1")
    assert Address.of("n", one, LUCENE).place != Address.of("n", other, LUCENE).place


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.integers(1, 7))
def test_queries_for_what_is_not_kept_find_each_of_it_once(there: set[int], kept: set[int], size: int) -> None:
    found = [
        place
        for query in others_in_scope("s", [f"{place:02}" for place in kept], size)
        for place in sorted(there)
        if _finds(query["bool"], f"{place:02}")
    ]
    assert sorted(found) == sorted(there - kept)


def _finds(query: dict, place: str) -> bool:
    """Whether a query, read as Elasticsearch does, finds a place in its scope."""
    for clause in query["filter"][1:]:
        interval = clause["range"]["place"]
        if place < interval.get("gte", "") or ("lt" in interval and place >= interval["lt"]):
            return False
    return not any(place in clause["terms"]["place"] for clause in query["must_not"])
