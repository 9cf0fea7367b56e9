"""The embedder behind an endpoint, against a real server that misbehaves on purpose."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mesa_pipeline.config import EmbeddingsSettings
from mesa_pipeline.errors import ConfigError, MissingDependency, ModelError
from mesa_pipeline.llm.cache import VectorCache
from mesa_pipeline.llm.endpoint_embedder import EndpointEmbedder
from mesa_pipeline.llm.ledger import Ledger
from tests.llm.conftest import Pauses, WordCounter
from tests.llm.misbehaving_server import (
    DIMENSIONS,
    Act,
    Exchange,
    MisbehavingServer,
    cut_body,
    embeddings,
    send,
    status,
    vector_of,
    well,
)

OpenEmbedder = Callable[..., EndpointEmbedder]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def open_embedder(embeddings_settings: EmbeddingsSettings, tmp_path: Path, ledger: Ledger) -> OpenEmbedder:
    def open_embedder(key: str | None = None, **changed: Any) -> EndpointEmbedder:
        settings = embeddings_settings.model_copy(update=changed)
        return EndpointEmbedder(settings, VectorCache(tmp_path / "vectors.sqlite"), ledger, WordCounter(), key, Pauses())

    return open_embedder


def unit(text: str) -> np.ndarray:
    vector = np.array(vector_of(text))
    return vector / np.linalg.norm(vector)


def inputs(server: MisbehavingServer) -> list[str]:
    return [text for request in server.requests for text in request.body["input"]]


def test_vectors_have_length_1_and_the_order_of_the_texts(server: MisbehavingServer, open_embedder: OpenEmbedder):
    texts = [f"text {k}" for k in range(10)]
    embedder = open_embedder(batch_size=3)
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert (embedder.name, embedder.dimensions) == ("Qwen/Qwen3-Embedding-4B", DIMENSIONS)
    assert sorted(len(request.body["input"]) for request in server.requests if request.body["input"] != ["dimensions"]) == [
        1,
        3,
        3,
        3,
    ]
    assert server.requests[0].path == "/v1/embeddings"


def test_each_text_is_paid_for_once(server: MisbehavingServer, open_embedder: OpenEmbedder, ledger: Ledger):
    first = open_embedder().embed(["a", "b", "a"])
    paid = ledger.spending()[0]
    again = open_embedder(batch_size=1, base_url="http://127.0.0.1:9/v1").embed(["b", "a"])
    assert sorted(inputs(server)) == ["a", "b", "dimensions"]
    assert (again == first[[1, 0]]).all() and (first[0] == first[2]).all()
    (spent,) = ledger.spending()
    assert (spent.phase, spent.attempts, spent.prompt_tokens) == ("embed", 2, paid.prompt_tokens)
    assert spent.replayed == 3


def test_another_model_is_asked_anew(server: MisbehavingServer, open_embedder: OpenEmbedder):
    open_embedder().embed(["a"])
    open_embedder(model="another").embed(["a"])
    assert inputs(server).count("a") == 2


def test_texts_without_words_have_the_zero_vector_and_are_not_sent(server: MisbehavingServer, open_embedder: OpenEmbedder):
    vectors = open_embedder().embed(["", " \n", "word"])
    assert not vectors[:2].any()
    assert np.linalg.norm(vectors[2]) == pytest.approx(1.0)
    assert "" not in inputs(server)
    assert open_embedder().embed([]).shape == (0, DIMENSIONS)


def test_a_zero_vector_stays_one(server: MisbehavingServer, open_embedder: OpenEmbedder):
    server.script = [send(embeddings([[0.0] * DIMENSIONS]))]
    vectors = open_embedder().embed(["strange"])
    assert vectors.shape == (1, DIMENSIONS)
    assert not vectors.any()


def test_vectors_that_come_in_another_order_find_their_texts(server: MisbehavingServer, open_embedder: OpenEmbedder):
    def backwards(exchange: Exchange) -> None:
        reply = json.loads(embeddings([vector_of(text) for text in exchange.request.body["input"]]))
        reply["data"].reverse()
        exchange.send(json.dumps(reply).encode())

    server.otherwise = backwards
    np.testing.assert_allclose(open_embedder().embed(["a", "b", "c"]), [unit("a"), unit("b"), unit("c")], atol=1e-6)


PASSING: dict[str, Act] = {
    "429": status(429),
    "500": status(500),
    "cut": cut_body,
    "not JSON": send(b"oops"),
    "no data": send(b'{"object": "list"}'),
    "too few": send(embeddings([[1.0] * DIMENSIONS])),
    "null": send(embeddings([None, None])),
    "empty": send(embeddings([[], []])),
    "unequal": send(embeddings([[1.0] * DIMENSIONS, [1.0]])),
    "text": send(embeddings([["1"] * DIMENSIONS] * 2)),
    "truths": send(embeddings([[True] * DIMENSIONS] * 2)),
    "not a number": send(embeddings([[float("nan")] * DIMENSIONS] * 2)),
    "infinite": send(embeddings([[float("inf")] * DIMENSIONS] * 2)),
    "beyond float32": send(embeddings([[1e300] * DIMENSIONS] * 2)),
    "beyond any float": send(embeddings([[10**400] * DIMENSIONS] * 2)),
}


@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_is_asked_again(fault: str, server: MisbehavingServer, open_embedder: OpenEmbedder, ledger: Ledger):
    server.script = [PASSING[fault]]
    np.testing.assert_allclose(open_embedder().embed(["a", "b"]), [unit("a"), unit("b")], atol=1e-6)
    assert ledger.spending()[0].failed == 1


def test_what_was_embedded_before_a_failure_is_kept(server: MisbehavingServer, open_embedder: OpenEmbedder):
    def all_but_the_third(exchange: Exchange) -> None:
        (status(400, "no") if "t2" in exchange.request.body["input"] else well)(exchange)

    server.otherwise = all_but_the_third
    texts = [f"t{k}" for k in range(6)]
    with pytest.raises(ModelError, match=r"1 of 3 requests got no reply, the first: HTTP 400"):
        open_embedder(batch_size=2).embed(texts)
    server.otherwise = None
    server.requests.clear()
    open_embedder(batch_size=2).embed(texts)
    assert sorted(inputs(server)) == ["dimensions", "t2", "t3"]


def test_texts_too_long_lose_their_end_before_they_are_sent(server: MisbehavingServer, open_embedder: OpenEmbedder):
    open_embedder(context_tokens=300).embed([" ".join(f"w{k}" for k in range(1000)), "short"])
    long, short = server.requests[0].body["input"]
    assert long.startswith("w0 w1 ")
    assert 270 <= len(long.split()) <= 300
    assert short == "short"


def test_texts_that_the_server_finds_too_long_are_shortened_once_more(server: MisbehavingServer, open_embedder: OpenEmbedder):
    """The server counts three tokens a word and takes 300; a short text is left alone, and each is kept as it was."""

    def limited(exchange: Exchange) -> None:
        counted = max(3 * len(text.split()) for text in exchange.request.body["input"])
        refusal = status(
            400, f"This model's maximum context length is 300 tokens. However, your request has {counted} input tokens."
        )
        (refusal if counted > 300 else well)(exchange)

    server.otherwise = limited
    texts = [" ".join(f"w{k}" for k in range(250)), "short"]
    first = open_embedder(context_tokens=400).embed(texts)
    first_try, second_try = (request.body["input"] for request in server.requests[:2])
    assert first_try == texts
    assert 80 <= len(second_try[0].split()) <= 100
    assert second_try[1] == "short"
    requests = len(server.requests)
    assert (open_embedder(context_tokens=400).embed(texts) == first).all()
    assert len(server.requests) == requests


def test_a_model_exchanged_under_its_name_is_found_out(server: MisbehavingServer, open_embedder: OpenEmbedder):
    open_embedder().embed(["a"])
    server.otherwise = lambda exchange: exchange.send(embeddings([[1.0] * 3 for _ in exchange.request.body["input"]]))
    with pytest.raises(ConfigError, match="gives vectors of 3 and 8 dimensions under one name; use another --workspace"):
        open_embedder().embed(["a", "b"])


def test_hostile_texts_are_embedded(server: MisbehavingServer, open_embedder: OpenEmbedder):
    texts = ["\x00", "half \ud83d", "\u202egnp", "{}" * 1000, "x" * 100_000]
    lengths = np.linalg.norm(open_embedder(context_tokens=100_000).embed(texts), axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-6)


def test_nobody_there_names_the_place(open_embedder: OpenEmbedder):
    with pytest.raises(MissingDependency, match=r"'Qwen/Qwen3-Embedding-4B' at http://127.0.0.1:9/v1 cannot be reached"):
        open_embedder(base_url="http://127.0.0.1:9/v1", max_attempts=1).embed(["a"])
