"""What ``mesa doctor`` says of endpoints, against a real HTTP server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mesa_pipeline.cli.endpoint_checks import endpoint_checks
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.errors import MissingDependency
from tests.llm.misbehaving_server import Act, Exchange, MisbehavingServer, chat, usage, well

REPOSITORY = Path(__file__).resolve().parents[2]
KEY = "a-secret-of-some-length"
MODELS = ("Qwen/Qwen3-32B", "Qwen/Qwen3-Embedding-4B")


def serving(context_tokens: int, models: tuple[str, ...] = MODELS, cached: int = 0) -> Act:
    def act(exchange: Exchange) -> None:
        if exchange.request.path.endswith("/models"):
            data = [{"id": model, "max_model_len": context_tokens} for model in models]
            exchange.send(json.dumps({"data": data}).encode())
        elif exchange.request.path.endswith("/chat/completions"):
            exchange.send(chat({"role": "assistant", "content": "x"}, usage=usage(600, 1, cached)))
        else:
            well(exchange)

    return act


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as server:
        yield server


def paper(server: MisbehavingServer, *overrides: str) -> Settings:
    urls = (f"llm.{kind}.base_url={server.base_url}" for kind in ("chat", "embeddings"))
    return load_settings(REPOSITORY / "params.yaml", (*urls, *overrides), {}, profile="paper")


def said(settings: Settings) -> dict[str, Any]:
    return {name: check() for name, check in endpoint_checks(settings).items()}


def test_what_a_profile_does_not_use_is_not_asked():
    checks = said(load_settings(REPOSITORY / "params.yaml", (), {}, profile="offline"))
    assert checks == {
        "profile": "offline",
        "chat endpoint": "not used by this profile",
        "embeddings endpoint": "not used by this profile",
    }


def test_models_context_prefix_cache_and_key_are_told(server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MESA_API_KEY", KEY)
    server.otherwise = serving(32_768, cached=592)
    checks = said(paper(server))
    assert checks["profile"] == "paper"
    assert checks["chat endpoint"] == (
        f"Qwen/Qwen3-32B at {server.base_url}, 32,768 tokens of context; a key in MESA_API_KEY; "
        "prefix caching answers (592 of 600 tokens the second time); "
        "asked to summarize, extract, check, answer, judge, select, propose"
    )
    assert checks["embeddings endpoint"] == (
        f"Qwen/Qwen3-Embedding-4B at {server.base_url}, 32,768 tokens of context; a key in MESA_API_KEY; 8 dimensions"
    )
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}


def test_a_server_without_prefix_cache_or_key_is_told_as_such(server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MESA_API_KEY", raising=False)
    server.otherwise = serving(32_768)
    assert "no key in MESA_API_KEY; no prefix caching seen" in said(paper(server))["chat endpoint"]


def test_another_model_or_a_smaller_context_is_a_fault(server: MisbehavingServer):
    server.otherwise = serving(32_768, models=("tiny",))
    with pytest.raises(MissingDependency, match="serves tiny, not 'Qwen/Qwen3-32B'"):
        said(paper(server))
    server.otherwise = serving(4_096)
    with pytest.raises(MissingDependency, match="4,096 tokens of context, and the settings count on 32,768"):
        said(paper(server))


def test_further_judges_are_asked_too(server: MisbehavingServer):
    server.otherwise = serving(32_768, models=(*MODELS, "gemma"))
    judge = f"evaluation.judges=[{{name: gemma-judge, base_url: '{server.base_url}', model: gemma, key_variable: GEMMA_KEY}}]"
    assert "gemma at http://127.0.0.1" in said(paper(server, judge))["judge gemma-judge"]
