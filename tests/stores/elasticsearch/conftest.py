"""An emulator that can be made to misbehave, and stores on it."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from mesa_pipeline.config import Bm25Settings, Settings
from mesa_pipeline.stores import Place
from mesa_pipeline.stores.elasticsearch import ElasticsearchStore
from tests.elasticsearch_emulator import Proxy

LUCENE = Bm25Settings(variant="lucene", k1=1.5, b=0.75, epsilon=0.25, tokenizer="whitespace")
OKAPI = LUCENE.model_copy(update={"variant": "okapi"})
PLACE = Place("any", "raw", "one", "1")
QUICK = {"timeout_seconds": 30.0, "max_attempts": 3, "backoff_seconds": 0.01, "max_backoff_seconds": 0.02}

OpenStore = Callable[..., ElasticsearchStore]


@pytest.fixture
def proxy(elasticsearch_emulator: str) -> Iterator[Proxy]:
    with Proxy(elasticsearch_emulator) as proxy:
        yield proxy


@pytest.fixture
def index_name() -> str:
    """An index that no other test uses."""
    return f"mesa-test-{uuid.uuid4().hex}"


@pytest.fixture
def open_store(proxy: Proxy, settings: Settings, index_name: str) -> OpenStore:
    """Opens stores behind the proxy."""

    def open_store(bm25: Bm25Settings = LUCENE, key: str | None = None, **changed: object) -> ElasticsearchStore:
        update = {**QUICK, "url": proxy.url, "index": index_name, **changed}
        return ElasticsearchStore(settings.stores.elasticsearch.model_copy(update=update), bm25, "default", key)

    return open_store
