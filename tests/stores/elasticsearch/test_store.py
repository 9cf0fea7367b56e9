"""What is written and in which order: whole or not at all, into an index of our own."""

from collections.abc import Callable

import pytest
from elasticsearch import Elasticsearch

from mesa_pipeline.errors import ArtifactError, MissingDependency, WorkFailed
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.stores.elasticsearch.documents import MAPPINGS, Address
from tests.elasticsearch_emulator import Act, Exchange, Proxy, Reply, cut_at_once, refuse, well
from tests.stores.elasticsearch.conftest import LUCENE, OKAPI, PLACE, OpenStore

MANY = [f"red {'pad ' * (number % 7)}" for number in range(450)]
"""Windows enough for three bulk requests."""


CountDocuments = Callable[[], int]


@pytest.fixture
def client(proxy: Proxy) -> Elasticsearch:
    """A client of the emulator itself."""
    return Elasticsearch(proxy.emulator)


@pytest.fixture
def count_documents(client: Elasticsearch, index_name: str) -> CountDocuments:
    def count_documents() -> int:
        client.indices.refresh(index=index_name)
        return int(client.count(index=index_name)["count"])

    return count_documents


def test_the_index_is_made_once_and_takes_no_other_fields(proxy: Proxy, open_store: OpenStore, index_name: str) -> None:
    store = open_store()
    for episode in ("one", "two"):
        store.put(PLACE._replace(episode=episode), Bm25Index.build(["red"], LUCENE))
    (made,) = [asked for asked in proxy.asked if asked.method == "PUT" and asked.path == f"/{index_name}"]
    assert made.body == {"mappings": MAPPINGS}
    assert MAPPINGS["dynamic"] == "strict"


def test_windows_first_and_the_word_that_they_are_whole_last(proxy: Proxy, open_store: OpenStore) -> None:
    store, index = open_store(), Bm25Index.build(MANY, LUCENE)
    store.put(PLACE, index)
    order = [asked.path.partition("?")[0].split("/", 2)[-1] for asked in proxy.asked]
    document = f"_doc/{Address.of('default', PLACE, LUCENE).place}"
    assert order[0] == document  # is it there?
    assert order[-6:] == ["_bulk", "_bulk", "_bulk", "_refresh", document, "_delete_by_query"]
    written = [line for asked in proxy.to("_bulk") for line in asked.lines if "position" in line]
    assert [line["position"] for line in written] == list(range(450))
    assert all(asked.content.isascii() for asked in proxy.asked)


def test_an_index_of_somebody_else_is_left_alone(
    open_store: OpenStore, client: Elasticsearch, index_name: str, count_documents: CountDocuments
) -> None:
    store = open_store()
    client.index(index=index_name, id="1", document={"title": "theirs"}, refresh=True)
    with pytest.raises(ArtifactError, match=rf"{index_name}.*holds something else.*stores\.elasticsearch\.index"):
        store.put(PLACE, Bm25Index.build(["red"], LUCENE))
    store.keep_only("any", "raw", [])
    assert count_documents() == 1
    with pytest.raises(ArtifactError, match="something else"):
        store.describe()


def test_an_index_of_another_format_is_refused(open_store: OpenStore, client: Elasticsearch, index_name: str) -> None:
    store = open_store()
    mappings = {"_meta": {"made_by": "mesa_pipeline", "format": 0}}
    client.indices.create(index=index_name, mappings=mappings)
    with pytest.raises(ArtifactError, match="has format 0"):
        store.put(PLACE, Bm25Index.build(["red"], LUCENE))


def test_an_index_made_meanwhile_by_another_process_is_taken(
    proxy: Proxy, open_store: OpenStore, client: Elasticsearch, index_name: str
) -> None:
    store = open_store()
    proxy.acts[f"/{index_name}/_mapping"] = [refuse(404, "not yet")]
    client.indices.create(index=index_name, mappings=MAPPINGS)
    store.put(PLACE, Bm25Index.build(["red"], LUCENE))
    assert store.holds(PLACE)


@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_a_put_that_is_cut_is_not_seen_and_is_made_good_by_the_next(
    proxy: Proxy, open_store: OpenStore, chunks: int, count_documents: CountDocuments
) -> None:
    store, index = open_store(), Bm25Index.build(MANY, LUCENE)
    proxy.acts["_bulk"], proxy.lasting = [well] * chunks + [cut_at_once], {"_bulk"}
    with pytest.raises(MissingDependency):
        store.put(PLACE, index)
    assert not store.holds(PLACE)
    with pytest.raises(ArtifactError):
        store.open(PLACE)
    proxy.acts.clear()
    store.put(PLACE, index)
    assert count_documents() == 451
    assert store.open(PLACE).search("red", 5) == index.search("red", 5)


@pytest.mark.parametrize("last", ["_refresh", "_doc"])
def test_a_put_that_is_cut_before_its_last_word_is_not_seen(proxy: Proxy, open_store: OpenStore, last: str) -> None:
    store = open_store()
    proxy.acts[last], proxy.lasting = ([well] if last == "_doc" else []) + [cut_at_once], {last}
    with pytest.raises(MissingDependency):
        store.put(PLACE, Bm25Index.build(["red", "blue"], LUCENE))
    proxy.acts.clear()
    assert not store.holds(PLACE)


def test_the_version_that_is_there_serves_until_the_next_is_whole(
    proxy: Proxy, open_store: OpenStore, count_documents: CountDocuments
) -> None:
    store, first, second = open_store(), Bm25Index.build(["red key", "red"], LUCENE), Bm25Index.build(MANY, LUCENE)
    store.put(PLACE, first)
    proxy.acts["_bulk"], proxy.lasting = [well, cut_at_once], {"_bulk"}
    with pytest.raises(MissingDependency):
        store.put(PLACE._replace(version="2"), second)
    proxy.acts.clear()
    assert store.open(PLACE).search("red", 2) == first.search("red", 2)
    store.put(PLACE._replace(version="3"), first)
    assert count_documents() == 3  # nothing of version 1 or of what was there of version 2


def test_what_a_cut_put_left_of_a_vanished_episode_is_deleted_too(
    proxy: Proxy, open_store: OpenStore, count_documents: CountDocuments
) -> None:
    store = open_store()
    proxy.acts["_bulk"], proxy.lasting = [well, cut_at_once], {"_bulk"}
    with pytest.raises(MissingDependency):
        store.put(PLACE, Bm25Index.build(MANY, LUCENE))
    store.keep_only("any", "raw", ["another"])
    assert count_documents() == 0


def test_windows_deleted_by_somebody_else_are_missed_and_put_again(
    open_store: OpenStore, client: Elasticsearch, index_name: str
) -> None:
    store, index = open_store(), Bm25Index.build(["red", "blue", "red key"], LUCENE)
    store.put(PLACE, index)
    client.delete_by_query(index=index_name, query={"term": {"position": 1}}, refresh=True)
    assert not store.holds(PLACE)
    store.put(PLACE, index)
    assert store.open(PLACE).search("blue", 3) == index.search("blue", 3)


def test_windows_that_the_server_refuses_are_listed(proxy: Proxy, open_store: OpenStore) -> None:
    def refuse_some(exchange: Exchange) -> None:
        reply = exchange.forward()
        for item in reply.body["items"][:5]:
            item["index"].update(status=400, error={"type": "document_parsing_exception", "reason": "too odd"})
        exchange.send(Reply(200, {**reply.body, "errors": True}))

    store = open_store()
    proxy.acts["_bulk"] = [refuse_some]
    with pytest.raises(WorkFailed, match=r"-0 \(HTTP 400: document_parsing_exception: too odd\).*and 2 more"):
        store.put(PLACE, Bm25Index.build(["red"] * 9, LUCENE))
    assert not store.holds(PLACE)


def busy_for(position: int) -> Act:
    """All is written, but one document of the request is said to have found the server busy."""

    def busy(exchange: Exchange) -> None:
        reply = exchange.forward()
        error = {"type": "es_rejected_execution_exception", "reason": "busy"}
        reply.body["items"][position]["index"].update(status=429, error=error)
        exchange.send(Reply(200, {**reply.body, "errors": True}))

    return busy


def test_windows_that_the_server_is_too_busy_for_are_sent_again(proxy: Proxy, open_store: OpenStore) -> None:
    store, index = open_store(), Bm25Index.build(["red", "blue", "green"], LUCENE)
    proxy.acts["_bulk"] = [busy_for(1)]
    store.put(PLACE, index)
    assert [len(asked.lines) for asked in proxy.to("_bulk")] == [6, 2]
    assert store.open(PLACE).search("blue", 3) == index.search("blue", 3)


def test_a_server_that_stays_too_busy_for_a_window_is_given_up(proxy: Proxy, open_store: OpenStore) -> None:
    proxy.acts["_bulk"], proxy.lasting = [busy_for(0)], {"_bulk"}
    with pytest.raises(WorkFailed, match="busy"):
        open_store().put(PLACE, Bm25Index.build(["red", "blue"], LUCENE))
    assert len(proxy.to("_bulk")) == 3
    assert not open_store().holds(PLACE)


def test_more_episodes_are_kept_than_one_query_may_name(open_store: OpenStore) -> None:
    store, index = open_store(), Bm25Index.build(["red"], LUCENE)
    kept, gone = PLACE, PLACE._replace(episode="gone")
    store.put(kept, index)
    store.put(gone, index)
    store.keep_only("any", "raw", [kept.episode, *(f"episode {number}" for number in range(70_000))])
    assert (store.holds(kept), store.holds(gone)) == (True, False)


def test_what_is_not_deleted_is_said(proxy: Proxy, open_store: OpenStore) -> None:
    store = open_store()
    store.put(PLACE, Bm25Index.build(["red"], LUCENE))
    failure = {"deleted": 0, "failures": [{"cause": {"reason": "disk full"}}]}
    proxy.acts["_delete_by_query"] = [lambda exchange: exchange.send(Reply(200, failure))]
    with pytest.raises(WorkFailed, match="disk full"):
        store.keep_only("any", "raw", [])


def test_the_server_is_described(open_store: OpenStore, proxy: Proxy, index_name: str) -> None:
    store = open_store(OKAPI)
    assert store.describe() == f"8.15.3 at {proxy.url}; index {index_name} is made by the first build"
    store.put(PLACE, Bm25Index.build(["red"], OKAPI))
    assert store.describe().endswith("is there")
