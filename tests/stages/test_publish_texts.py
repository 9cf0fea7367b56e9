"""R searched in Elasticsearch, an emulator here: the evidence is the process's own, and the server follows the data."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import MissingDependency, WorkFailed
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.storage import read_manifest
from tests.conftest import REPOSITORY
from tests.elasticsearch_emulator import Proxy
from tests.pipeline import SMALL

OpenContext = Callable[..., StageContext]


@pytest.fixture
def proxy(elasticsearch_emulator: str) -> Iterator[Proxy]:
    with Proxy(elasticsearch_emulator) as proxy:
        yield proxy


@pytest.fixture
def open_context(tmp_path: Path) -> OpenContext:
    """A workspace by name, with changed settings and its episodes read."""

    def open_context(name: str, *overrides: str) -> StageContext:
        settings = load_settings(REPOSITORY / "params.yaml", [*SMALL, *overrides], {})
        context = StageContext(Layout(tmp_path / name, "synthetic"), settings)
        ingest(context)
        return context

    return open_context


@pytest.fixture
def on_server(proxy: Proxy) -> list[str]:
    """Settings that have R searched in an index of its own."""
    index = f"mesa-test-{uuid.uuid4().hex}"
    return ["stores.texts=elasticsearch", f"stores.elasticsearch.url={proxy.url}", f"stores.elasticsearch.index={index}"]


def evidence_of(context: StageContext) -> dict[str, bytes]:
    """What was retrieved and previewed of R, by file."""
    layout = context.layout
    folders = layout.evidence("raw", "any").parent, layout.preview("raw", "any").parent
    return {str(path.relative_to(layout.workspace)): path.read_bytes() for folder in folders for path in folder.iterdir()}


def places(context: StageContext, proxy: Proxy) -> int:
    """Of how many episodes the server has copies, all of them whole."""
    client, index = Elasticsearch(proxy.emulator), context.settings.stores.elasticsearch.index
    client.indices.refresh(index=index)
    found = client.search(index=index, aggs={"places": {"terms": {"field": "place", "size": 99}}}, size=0)
    held = len(found["aggregations"]["places"]["buckets"])
    assert client.count(index=index, query={"term": {"kind": "memory"}})["count"] == held
    return held


@pytest.mark.parametrize("variant", ["lucene", "okapi"])
def test_evidence_is_byte_for_byte_that_of_the_process(open_context, on_server, proxy, variant) -> None:
    ranking = f"stores.bm25.variant={variant}"
    here, there = open_context("here", ranking), open_context("there", ranking, *on_server)
    for context in (here, there):
        build(context, "R")
        retrieve(context, "R")
    assert evidence_of(here) == evidence_of(there)
    assert len(evidence_of(here)) == 2 * len(read_manifest(here.layout).episodes)
    assert len(proxy.to("_search")) >= read_manifest(here.layout).question_count


def test_building_again_publishes_nothing(open_context, on_server, proxy) -> None:
    context = open_context("there", *on_server)
    assert build(context, "R").made > 0
    written = len(proxy.to("_bulk"))
    assert written == len(read_manifest(context.layout).episodes)
    assert build(context, "R").made == 0
    assert len(proxy.to("_bulk")) == written


def test_episodes_that_left_the_data_leave_the_server(open_context, on_server, proxy) -> None:
    build(open_context("there", *on_server), "R")
    fewer = open_context("there", *on_server, "datasets.synthetic.episodes=6")
    build(fewer, "R")
    assert places(fewer, proxy) == 6


def test_copies_stay_while_the_server_is_switched_off_and_one_build_with_it_deletes_them(
    open_context, on_server, proxy
) -> None:
    build(open_context("there", *on_server), "R")
    asked = len(proxy.asked)
    build(open_context("there", "datasets.synthetic.episodes=6"), "R")
    assert len(proxy.asked) == asked
    fewer = open_context("there", *on_server, "datasets.synthetic.episodes=6")
    assert places(fewer, proxy) == 10
    assert build(fewer, "R").made == 0
    assert places(fewer, proxy) == 6


def test_a_server_that_lost_all_is_filled_again(open_context, on_server, proxy) -> None:
    context = open_context("there", *on_server)
    build(context, "R")
    Elasticsearch(proxy.emulator).indices.delete(index=context.settings.stores.elasticsearch.index)
    failed = retrieve(context, "R").failed
    assert len(failed) == len(read_manifest(context.layout).episodes)
    assert "put it there with `mesa build`" in failed[0]
    build(context, "R")
    assert not retrieve(context, "R").failed


def test_another_ranking_is_published_beside_no_new_memory(open_context, on_server, proxy) -> None:
    build(open_context("there", *on_server), "R")
    written = len(proxy.to("_bulk"))
    other = open_context("there", *on_server, "stores.bm25.k1=1.2")
    assert retrieve(other, "R").failed
    build(other, "R")
    assert len(proxy.to("_bulk")) == 2 * written
    assert not retrieve(other, "R").failed


def test_without_the_server_building_says_what_to_do(open_context) -> None:
    nowhere = [
        "stores.texts=elasticsearch",
        "stores.elasticsearch.url=http://127.0.0.1:9",
        "stores.elasticsearch.max_attempts=1",
    ]
    with pytest.raises((MissingDependency, WorkFailed), match=r"stores\.texts=process"):
        build(open_context("there", *nowhere), "R")
