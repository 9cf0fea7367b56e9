"""A model of this process's own: opened on first use, once, for this machine alone, and gone with the process."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mesa_pipeline.config import ChatSettings, LocalSettings, Settings
from mesa_pipeline.errors import ConfigError, MissingDependency
from mesa_pipeline.llm.cache import VectorCache
from mesa_pipeline.llm.endpoint_embedder import EndpointEmbedder
from mesa_pipeline.llm.ledger import Ledger
from mesa_pipeline.llm.llama_server import url_of, weights_of
from tests.llm.conftest import WordCounter

MODEL = "SmolLM2-135M-Instruct"
LOCAL = LocalSettings(threads=1, prompt_cache_mb=0)
SERVE_AND_WAIT = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whatever started the tests may ignore it
from mesa_pipeline.config import ChatSettings, LocalSettings
from mesa_pipeline.llm.llama_server import url_of
print(url_of(ChatSettings.model_validate_json(sys.argv[1]), LocalSettings(threads=1, prompt_cache_mb=0)), flush=True)
time.sleep(600)
"""

LEAVE_A_REQUEST = """
import json, sys, urllib.request
from mesa_pipeline.config import EmbeddingsSettings, LocalSettings
from mesa_pipeline.llm.llama_server import url_of
url = url_of(EmbeddingsSettings.model_validate_json(sys.argv[1]), LocalSettings(threads=1, prompt_cache_mb=0))
request = urllib.request.Request(f"{url}/embeddings", json.dumps({"input": "word " * 8000}).encode(), method="POST")
try:
    urllib.request.urlopen(request, timeout=1)
except TimeoutError:
    print(url, flush=True)
"""
"""Gives up on all that one batch holds, which takes llama.cpp a minute of processor time."""


@pytest.fixture(scope="module")
def local_chat(settings: Settings) -> ChatSettings:
    pytest.importorskip("xllamacpp", reason="the extra local-llm is not installed")
    changed = {"base_url": "local://", "model": MODEL, "context_tokens": 1024, "max_concurrency": 2}
    return settings.llm.chat.model_copy(update=changed)


def models_at(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/models", timeout=60) as reply:
        return [model["id"] for model in json.load(reply)["data"]]


def is_served(url: str) -> bool:
    try:
        return models_at(url) == [MODEL]
    except OSError:  # refused, or cut in the middle
        return False


def test_an_endpoint_that_is_somewhere_is_left_where_it_is(settings: Settings):
    assert url_of(settings.llm.chat, LOCAL) == "http://127.0.0.1:8000/v1"


def test_it_serves_the_model_to_this_machine_under_the_name_of_the_settings(local_chat: ChatSettings):
    url = url_of(local_chat, LOCAL)
    assert url.startswith("http://127.0.0.1:")
    assert models_at(url) == [MODEL]


def test_any_number_of_threads_share_one_server(local_chat: ChatSettings):
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: url_of(local_chat, LOCAL), range(16)))) == 1


def test_a_model_of_one_s_own_is_named_by_its_path(local_chat: ChatSettings, tmp_path: Path):
    path = tmp_path / "own.gguf"
    path.symlink_to(weights_of(MODEL))
    own = local_chat.model_copy(update={"model": str(path), "max_concurrency": 1})
    assert models_at(url_of(own, LOCAL)) == [str(path)]


def test_prompts_of_others_are_not_shown(local_chat: ChatSettings):
    url = url_of(local_chat, LOCAL).removesuffix("/v1")
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{url}/slots", timeout=60)


@pytest.mark.parametrize("name", ["nowhere.gguf", "SmolLM3", ""])
def test_a_model_that_is_nowhere_is_named_with_those_that_are(name: str, local_chat: ChatSettings):
    with pytest.raises(ConfigError, match=MODEL):
        url_of(local_chat.model_copy(update={"model": name}), LOCAL)


def test_a_file_that_is_no_model_is_named(local_chat: ChatSettings, tmp_path: Path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ConfigError, match=r"broken\.gguf"):
        url_of(local_chat.model_copy(update={"model": str(path)}), LOCAL)


def test_without_the_packages_it_says_which_extra_brings_them(local_chat: ChatSettings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingDependency, match="local-llm"):
        url_of(local_chat.model_copy(update={"context_tokens": 512}), LOCAL)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_process_however_that_ends(how: signal.Signals, local_chat: ChatSettings):
    arguments = [sys.executable, "-c", SERVE_AND_WAIT, local_chat.model_dump_json()]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"]}) as process:
        url = process.stdout.readline().strip()
        assert models_at(url) == [MODEL]
        process.send_signal(how)
        process.wait(60)
    deadline = time.monotonic() + 60
    while is_served(url):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_a_process_ends_at_once_though_a_request_is_in_hand(settings: Settings, local_chat: ChatSettings):
    changed = {"base_url": "local://", "model": MODEL, "context_tokens": 8192, "max_concurrency": 1}
    embeddings = settings.llm.embeddings.model_copy(update=changed)
    arguments = [sys.executable, "-c", LEAVE_A_REQUEST, embeddings.model_dump_json()]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"]}) as process:
        url = process.stdout.readline().strip()
        try:
            assert process.wait(20) == 0
        finally:
            process.kill()
    assert not is_served(url)


def test_it_embeds(settings: Settings, local_chat: ChatSettings, tmp_path: Path):
    changed = {"base_url": "local://", "model": MODEL, "context_tokens": 512, "max_concurrency": 1}
    embeddings = settings.llm.embeddings.model_copy(update=changed)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    cache = VectorCache(tmp_path / "vectors.sqlite")
    embedder = EndpointEmbedder(embeddings, cache, ledger, WordCounter(), locate=lambda of: url_of(of, LOCAL))
    vectors = embedder.embed(["the key is in the drawer", "a key lies in the drawer", "", "numpy raises ValueError"])
    assert vectors.shape == (4, embedder.dimensions) == (4, 576)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[3]
    assert not vectors[2].any()
    assert ledger.spending()[0].prompt_tokens > 0
