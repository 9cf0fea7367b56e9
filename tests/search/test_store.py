"""The folder of a search: what is put is found under its hash, whole or not at all."""

import hashlib
import json

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.search.store import EVALUATED, PROPOSED, Choices, SearchStore
from tests.search.searches import contents

HOSTILE = ["", "a\x00b", "\ud800", "\u202eשלום", "{}\r\n\t", "x" * 100_000]


@pytest.fixture
def store(tmp_path):
    return SearchStore(tmp_path)


@pytest.mark.parametrize("source", HOSTILE)
def test_sources_come_back_as_they_were(store, source):
    sha = store.put_source(source)
    assert store.source(sha) == source
    assert (store.folder / "policies" / f"{sha}.py").read_bytes() == source.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("state", [None, {}, [], 0, -0.5, "", *HOSTILE, {"\x00": [1, {"\ud800": None}]}, 10**300])
def test_states_come_back_as_they_were(store, state):
    assert store.state(store.put_state(state)) == state


def test_choices_are_equal_exactly_when_their_names_are(store):
    first = store.put_choices(Choices(np.array([1, 31]), np.array([2])))
    assert first == store.put_choices(Choices(np.array([1, 31], dtype=np.int8), np.array([2])))
    assert first != store.put_choices(Choices(np.array([1]), np.array([31, 2])))
    found = store.choices(first)
    assert (found.train.tolist(), found.validation.tolist()) == ([1, 31], [2])
    assert found.train.dtype == np.int64


def test_a_name_is_the_hash_of_the_content(store):
    assert store.put_source("x") == hashlib.sha256(b"x").hexdigest()


def test_putting_twice_changes_nothing(store):
    store.put_source("x")
    before = contents(store.folder)
    store.put_source("x")
    assert contents(store.folder) == before


@pytest.mark.parametrize("damage", [lambda path: path.write_text("y"), lambda path: path.unlink()])
def test_a_changed_or_missing_file_is_refused(store, damage):
    sha = store.put_source("x")
    damage(store.folder / "policies" / f"{sha}.py")
    with pytest.raises(ArtifactError, match=r"(missing|changed); delete .* to search anew"):
        store.source(sha)


def test_exchanges_are_plain_json(store):
    store.put_exchange("01-explore", [{"role": "user", "content": "\ud800\x00"}])
    path = store.folder / "exchanges" / "01-explore.json"
    assert json.loads(path.read_text(encoding="ascii")) == [{"role": "user", "content": "\ud800\x00"}]


def test_events_are_found_by_kind_and_candidate(store):
    store.events.append(PROPOSED, {"id": "a"})
    store.events.append(PROPOSED, {"id": "b"})
    store.events.append(EVALUATED, {"id": "b"})
    assert [event["id"] for event in store.of(PROPOSED)] == ["a", "b"]
    assert store.find(EVALUATED, "a") is None
    assert store.find(EVALUATED, "b") == store.of(EVALUATED)[0]
