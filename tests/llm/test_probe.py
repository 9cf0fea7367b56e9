"""What endpoints say of themselves, told in the shapes of vLLM and of llama.cpp, and by servers that are neither."""

import json
from typing import Any

import pytest

from mesa_pipeline.config import ChatSettings, EmbeddingsSettings
from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.llm.probe import EndpointProbe, PrefixReuse, Probe
from tests.llm.misbehaving_server import MisbehavingServer, cut_at_once, say, send, status, usage

MODEL = "Qwen/Qwen3-32B"
OTHER = {"id": "other", "max_model_len": 64}


@pytest.fixture
def probe(chat_settings: ChatSettings, server: MisbehavingServer) -> EndpointProbe:
    return EndpointProbe(chat_settings, server.base_url, "s3cret-s3cret")


def listed(*models: Any) -> bytes:
    return json.dumps({"object": "list", "data": models}).encode()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (listed({"id": MODEL, "max_model_len": 32_768}), Probe((MODEL,), 32_768)),
        (listed({"id": MODEL, "meta": {"n_ctx": 8_192, "n_ctx_train": 131_072}}), Probe((MODEL,), 8_192)),
        (listed(OTHER, {"id": MODEL, "max_model_len": 128}), Probe(("other", MODEL), 128)),
        (listed({"id": MODEL}), Probe((MODEL,), None)),
        (listed({"id": MODEL, "max_model_len": "many", "meta": []}), Probe((MODEL,), None)),
        (listed("x", None, OTHER), Probe(("other",), 64)),
        (listed(), Probe((), None)),
        (b'{"data": {}}', Probe((), None)),
        (b"<html>", Probe((), None)),
    ],
)
def test_models_and_context_are_read_as_servers_tell_them(
    body: bytes, said: Probe, probe: EndpointProbe, server: MisbehavingServer
):
    server.script = [send(body)]
    assert probe.describe() == said
    assert server.requests[0].path == "/v1/models"
    assert server.requests[0].headers["authorization"] == "Bearer s3cret-s3cret"


@pytest.mark.parametrize(("cached", "found"), [(592, 592), (None, 0)])
def test_the_same_prompt_is_said_twice_and_the_second_time_counts(
    cached: int | None, found: int, chat_settings: ChatSettings, probe: EndpointProbe, server: MisbehavingServer
):
    server.script = [say("x", used=usage(608, 1, 600)), say("x", used=usage(608, 1, cached))]
    assert probe.prefix_reuse(chat_settings) == PrefixReuse(608, found)
    first, second = server.requests
    assert first.body == second.body
    assert first.body["max_tokens"] == 1


def test_vectors_are_measured(embeddings_settings: EmbeddingsSettings, server: MisbehavingServer):
    probe = EndpointProbe(embeddings_settings, server.base_url, None)
    assert probe.dimensions() == 8
    assert "authorization" not in server.requests[0].headers
    server.script = [send(b'{"data": []}')]
    with pytest.raises(MissingDependency, match="no embeddings"):
        probe.dimensions()


@pytest.mark.parametrize("act", [status(401, "s3cret-s3cret"), status(500), cut_at_once])
def test_an_endpoint_that_refuses_is_named_and_the_key_is_not(act: Any, probe: EndpointProbe, server: MisbehavingServer):
    server.script = [act]
    with pytest.raises(MissingDependency, match=r"127\.0\.0\.1") as refused:
        probe.describe()
    assert "s3cret" not in str(refused.value)
