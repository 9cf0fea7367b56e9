"""The endpoint by which wrapped packages ask our models: whose meter counts, and what becomes of failures."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from mesa_pipeline.baselines.model_proxy import ModelProxy
from mesa_pipeline.errors import ModelError, SystemFailure
from mesa_pipeline.llm.metering import MeteredChat, metered
from mesa_pipeline.llm.scripted import ScriptedModel
from tests.contracts.test_structures import HashingEmbedder


def replying(messages: Any, seed: int) -> Any:
    if messages[-1].content == "fill the disk":
        raise OSError("no space left")
    return ModelError("busy") if messages[-1].content == "fail" else "yes"


@pytest.fixture
def proxy() -> Iterator[ModelProxy]:
    model = MeteredChat(ScriptedModel(replying))
    with ModelProxy(lambda: model, HashingEmbedder) as entered:
        yield entered


def ask(proxy: ModelProxy, text: str, key: str | None = None) -> int:
    """What a package would: the status of the reply."""
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    headers = {"Authorization": f"Bearer {key or proxy.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{proxy.url}/chat/completions", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_each_thread_counts_its_own_requests_while_others_wait(proxy: ModelProxy) -> None:
    counted: dict[int, int] = {}
    inside: list[int] = []

    def work(number: int) -> None:
        with metered() as meter:
            with proxy.serving():
                inside.append(number)
                for _ in range(number):
                    ask(proxy, "hello")
                assert inside[-1] == number
            counted[number] = meter.cost.calls

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counted == {1: 1, 2: 2, 3: 3, 4: 4}


def test_a_failure_is_told_though_the_package_goes_on(proxy: ModelProxy) -> None:
    with pytest.raises(ModelError, match="busy"), proxy.serving():
        assert ask(proxy, "fail") == 500
        assert ask(proxy, "hello") == 200
    with proxy.serving():
        assert ask(proxy, "hello") == 200


def test_a_failure_of_ours_is_told_too(proxy: ModelProxy, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match="no space left"), proxy.serving():
        assert ask(proxy, "fill the disk") == 500
        assert ask(proxy, "hello") == 200
    assert capfd.readouterr().err == ""


def test_what_failed_is_told_rather_than_what_the_package_made_of_it(proxy: ModelProxy) -> None:
    with pytest.raises(ModelError, match="busy"), proxy.serving():
        ask(proxy, "fail")
        raise SystemFailure("InternalServerError")
    with pytest.raises(SystemFailure, match="its own"), proxy.serving():
        raise SystemFailure("its own")


@pytest.mark.parametrize("key", ["other", "\xe9"])
def test_who_has_no_key_gets_nothing(proxy: ModelProxy, key: str) -> None:
    with metered() as meter, proxy.serving():
        assert ask(proxy, "hello", key=key) == 401
    assert meter.cost.calls == 0


def test_many_requests_may_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are connected before the first is taken, as where this process is busy."""
    released, serve = threading.Event(), ThreadingHTTPServer.serve_forever

    def serve_late(server: ThreadingHTTPServer, poll_interval: float) -> None:
        released.wait()
        serve(server, poll_interval)

    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", serve_late)
    with ModelProxy(lambda: ScriptedModel(replying), HashingEmbedder) as proxy, ExitStack() as opened:
        address = (urlsplit(proxy.url).hostname, urlsplit(proxy.url).port)
        try:
            connections = [opened.enter_context(socket.create_connection(address, timeout=30)) for _ in range(64)]
        finally:
            released.set()
        for connection in connections:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\n\r\n")
        replies = [connection.recv(1024) for connection in connections]
    assert all(reply.startswith(b"HTTP/1.1 401") for reply in replies)


def test_who_goes_away_before_the_reply_leaves_no_trace(capfd: pytest.CaptureFixture[str]) -> None:
    asked, gone = threading.Event(), threading.Event()

    def late(messages: Any, seed: int) -> Any:
        asked.set()
        gone.wait(30)
        return "yes"

    body = json.dumps({"messages": [{"role": "user", "content": "hello"}]})
    with ModelProxy(lambda: ScriptedModel(late), HashingEmbedder) as proxy:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {proxy.key}\r\nContent-Length: {len(body)}\r\n\r\n"
        before = threading.active_count()
        with socket.create_connection((urlsplit(proxy.url).hostname, urlsplit(proxy.url).port)) as connection:
            connection.sendall((head + body).encode())
            assert asked.wait(30)
        gone.set()
        while threading.active_count() > before:
            time.sleep(0.01)
    assert capfd.readouterr().err == ""
