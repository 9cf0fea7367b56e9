"""Patience with a server that is busy or gone, and what is said of it."""

import multiprocessing
import threading
import traceback

import pytest

from mesa_pipeline.errors import ConfigError, MissingDependency, WorkFailed
from mesa_pipeline.stores.bm25 import Bm25Index
from tests.elasticsearch_emulator import Act, Exchange, Proxy, Reply, cut_at_once, cut_reply, hang, refuse
from tests.stores.elasticsearch.conftest import LUCENE, PLACE, OpenStore

SECRET = "a-very-secret-key"
TROUBLES = ["429", "503", "cut at once", "cut reply"]
NO_PORT = "http://127.0.0.1:9"
"""The port of a service that discards what it gets; nothing listens there."""


@pytest.mark.parametrize("act", [refuse(429), refuse(503), cut_at_once, cut_reply], ids=TROUBLES)
@pytest.mark.parametrize("path", ["_doc", "_bulk", "_refresh", "_count", "_search"])
def test_trouble_that_passes_is_waited_for(proxy: Proxy, open_store: OpenStore, path: str, act: Act) -> None:
    store, index = open_store(), Bm25Index.build(["red key", "red", "blue"], LUCENE)
    proxy.acts[path] = [act, act]
    store.put(PLACE, index)
    assert store.open(PLACE).search("red", 3) == index.search("red", 3)


@pytest.mark.parametrize("act", [refuse(429), refuse(503), cut_at_once, cut_reply], ids=TROUBLES)
def test_trouble_that_lasts_is_given_up_after_some_attempts(proxy: Proxy, open_store: OpenStore, act: Act) -> None:
    proxy.acts["_doc"], proxy.lasting = [act], {"_doc"}
    with pytest.raises(MissingDependency, match=r"http://127\.0\.0\.1:\d+ (is busy, also after 3 attempts|cannot be reached)"):
        open_store().holds(PLACE)
    assert len(proxy.to("_doc")) == 3


def test_a_server_that_never_replies_is_given_up(proxy: Proxy, open_store: OpenStore) -> None:
    proxy.acts["_doc"], proxy.lasting = [hang], {"_doc"}
    with pytest.raises(MissingDependency, match="cannot be reached"):
        open_store(timeout_seconds=0.2).holds(PLACE)
    assert len(proxy.to("_doc")) == 3


def test_what_is_refused_is_not_asked_again(proxy: Proxy, open_store: OpenStore) -> None:
    proxy.acts["_doc"] = [refuse(400, "that makes no sense")]
    with pytest.raises(WorkFailed, match="that makes no sense"):
        open_store().holds(PLACE)
    assert len(proxy.asked) == 1


def test_where_nothing_listens_the_remedy_is_named(open_store: OpenStore) -> None:
    with pytest.raises(MissingDependency, match=rf"{NO_PORT} cannot be reached.*stores\.texts=process"):
        open_store(url=NO_PORT).holds(PLACE)


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_does_not_let_us_in(proxy: Proxy, open_store: OpenStore, status: int) -> None:
    proxy.acts["_doc"] = [refuse(status)]
    with pytest.raises(MissingDependency, match="ELASTICSEARCH_API_KEY"):
        open_store(key=SECRET).holds(PLACE)


def test_a_server_of_an_older_version(proxy: Proxy, open_store: OpenStore) -> None:
    reason = "Accept version must be either version 8 or 7, but found 9"
    proxy.acts["_doc"] = [refuse(400, reason, "media_type_header_exception")]
    with pytest.raises(MissingDependency, match="older than version 9"):
        open_store().holds(PLACE)


def test_something_else_than_elasticsearch(proxy: Proxy, open_store: OpenStore) -> None:
    proxy.acts["_doc"] = [lambda exchange: exchange.send(Reply(200, {"found": False}, product=None))]
    with pytest.raises(MissingDependency, match="not Elasticsearch"):
        open_store().holds(PLACE)


def test_the_key_is_sent_and_shown_nowhere(proxy: Proxy, open_store: OpenStore) -> None:
    proxy.acts["_doc"] = [lambda exchange: refuse(400, f"not with {exchange.asked.headers['authorization']}")(exchange)]
    with pytest.raises(WorkFailed) as raised:
        open_store(key=SECRET).holds(PLACE)
    assert proxy.asked[0].headers["authorization"] == f"ApiKey {SECRET}"
    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_a_password_in_the_address_is_sent_and_shown_nowhere(proxy: Proxy, open_store: OpenStore) -> None:
    def echo(exchange: Exchange) -> None:
        refuse(400, f"{exchange.asked.headers['authorization']} p@ss/word-1 p%40ss%2Fword-1")(exchange)

    proxy.acts["_doc"] = [echo]
    url = proxy.url.replace("http://", "http://someone:p%40ss%2Fword-1@")
    with pytest.raises(WorkFailed) as raised:
        open_store(url=url).holds(PLACE)
    assert proxy.asked[0].headers["authorization"].startswith("Basic ")
    assert "word-1" not in str(raised.value)
    with pytest.raises(MissingDependency) as unreached:
        open_store(url="http://someone:p%40ss%2Fword-1@127.0.0.1:9").holds(PLACE)
    assert "word-1" not in str(unreached.value)


@pytest.mark.parametrize("url", ["", "localhost:9200", "http://host", "http://u:word-1@host:port", "ftp://u:word-1@host:9"])
def test_what_is_no_address_is_refused(open_store: OpenStore, url: str) -> None:
    with pytest.raises(ConfigError, match=r"stores\.elasticsearch\.url") as raised:
        open_store(url=url)
    assert "word-1" not in str(raised.value)


def test_a_forked_process_and_its_parent_do_not_share_a_connection(open_store: OpenStore) -> None:
    store, index = open_store(), Bm25Index.build(["red key", "red", "blue"], LUCENE)
    store.put(PLACE, index)
    reader = store.open(PLACE)
    found = multiprocessing.get_context("fork").Queue()

    def search_often() -> None:
        found.put([reader.search(query, 3) for query in ("red", "key") * 10])

    process = multiprocessing.get_context("fork").Process(target=search_often)
    process.start()
    here = [reader.search(query, 3) for query in ("red", "key") * 10]
    assert found.get(timeout=60) == here == [index.search(query, 3) for query in ("red", "key") * 10]
    process.join(60)


def test_threads_share_a_client(open_store: OpenStore) -> None:
    store, index = open_store(), Bm25Index.build(["red key", "red", "blue"], LUCENE)
    store.put(PLACE, index)
    reader, found = store.open(PLACE), []
    threads = [threading.Thread(target=lambda: found.append(reader.search("red", 3))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [index.search("red", 3)] * 8
