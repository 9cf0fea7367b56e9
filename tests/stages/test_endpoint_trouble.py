"""A sweep with reader, judge and embedder behind endpoints that misbehave: nothing lost or 0 in error, no secret written."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mesa_pipeline.artifacts import LEDGER, Layout, read_records
from mesa_pipeline.config import load_settings
from mesa_pipeline.llm.ledger import Ledger
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.storage import read_manifest, read_questions
from mesa_pipeline.stages.sweep import sweep
from mesa_pipeline.subsets import ALL_SUBSETS, STRUCTURE_CODES
from tests.conftest import REPOSITORY
from tests.llm.misbehaving_server import (
    Act,
    Exchange,
    MisbehavingServer,
    chat,
    cut_at_once,
    cut_body,
    echo_authorization,
    embeddings,
    say,
    send,
    status,
    usage,
    well,
)

KEY = "sk-test-8e7d6c5b4a39"
FAULTS: tuple[Act, ...] = (
    status(429, retry_after="0"),
    status(500),
    cut_at_once,
    cut_body,
    send(chat({"content": "x"})[:30]),
    say(None),
    say(""),
    echo_authorization(503),
    send(b"<html>busy</html>", "text/html"),
    send(embeddings([])),
)
Open = Callable[..., StageContext]


def answer_or_verdict(exchange: Exchange) -> None:
    """Embeddings as they are, no for every other verdict, and half a surrogate pair and a NUL in every answer."""
    if exchange.request.path.endswith("/embeddings"):
        well(exchange)
    elif exchange.request.body["max_tokens"] == 8:
        say("yes" if len(exchange.request.text) % 2 else "no")(exchange)
    else:
        say("It is in the \ud83d\x00 hall.", used=usage(100, 10))(exchange)


class EachOnceSpoilt:
    """Plays a fault for each request the first time it comes, and lets it be the second time."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, exchange: Exchange) -> None:
        body = repr(exchange.request.body)
        with self._lock:
            new = body not in self._seen
            fault = FAULTS[len(self._seen) % len(FAULTS)]
            self._seen.add(body)
        (fault if new else answer_or_verdict)(exchange)


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(otherwise=answer_or_verdict) as server:
        yield server


@pytest.fixture
def open_context(server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    monkeypatch.setenv("MESA_API_KEY", KEY)

    def open_context(**chat_settings: Any) -> StageContext:
        endpoint = {"base_url": server.base_url, "backoff_seconds": 0.0, "max_backoff_seconds": 0.0, **chat_settings}
        overrides = [f"llm.{part}.{name}={value}" for part in ("chat", "embeddings") for name, value in endpoint.items()]
        overrides += [
            "llm.embedder=endpoint",
            "reading.reader=llm",
            "evaluation.reward=llm_judge",
            "llm.roles.judge.max_tokens=8",
        ]
        overrides += ["datasets.synthetic.episodes=2", "datasets.synthetic.steps=10", "datasets.synthetic.questions=2"]
        settings = load_settings(REPOSITORY / "params.yaml", [*overrides, "run.workers=1"], {})
        return StageContext(Layout(tmp_path / "workspace", "synthetic"), settings)

    return open_context


def retrieved(context: StageContext) -> StageContext:
    ingest(context)
    for stage in (build, retrieve):
        for code in STRUCTURE_CODES:
            assert stage(context, code).failed == ()
    return context


def outcomes(context: StageContext) -> dict[tuple[str, int], dict[str, Any]]:
    entries = read_manifest(context.layout).episodes
    records = [record for entry in entries for record in read_records(context.layout.outcomes(entry.key), "mesa sweep")]
    return {(record["question_id"], record["subset"]): record for record in records}


def test_every_request_fails_once_and_no_outcome_is_missing(
    server: MisbehavingServer, open_context: Open, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    server.otherwise = EachOnceSpoilt()
    context = retrieved(open_context(key_variable="MESA_API_KEY"))
    with caplog.at_level(logging.DEBUG):
        summary = sweep(context)
    assert (summary.failed, summary.made) == ((), 4 * len(ALL_SUBSETS))
    scores = [outcome["score"] for outcome in outcomes(context).values()]
    assert len(scores) == 4 * len(ALL_SUBSETS)
    assert set(scores) == {0.0, 1.0}
    spending = {line.phase: line for line in Ledger(context.layout.workspace / LEDGER).spending()}
    assert spending.keys() == {"answer", "judge", "embed"}
    assert sum(line.attempts for line in spending.values()) == len(server.requests)
    assert any(line.failed for line in spending.values())
    asked = len(server.requests)
    assert sweep(context).made == 0
    assert len(server.requests) == asked
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    written = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert written == []
    assert KEY not in caplog.text


def test_a_question_without_a_reply_is_listed_and_only_it_is_asked_again(server: MisbehavingServer, open_context: Open):
    context = retrieved(open_context(max_attempts=2))
    broken = read_questions(context.layout, read_manifest(context.layout).episodes[1].key)[0]

    def all_but_one(exchange: Exchange) -> None:
        spoilt = exchange.request.path.endswith("/completions") and broken.text in exchange.request.text
        (status(500, "out of memory") if spoilt else answer_or_verdict)(exchange)

    server.otherwise = all_but_one
    summary = sweep(context)
    assert len(summary.failed) == 1
    assert broken.id in summary.failed[0] and "out of memory" in summary.failed[0]
    held = outcomes(context)
    assert {record["score"] for (question, _), record in held.items() if question == broken.id} <= {None}
    assert all(record["score"] is not None for (question, _), record in held.items() if question != broken.id)
    server.otherwise = answer_or_verdict
    server.requests.clear()
    again = sweep(context)
    assert (again.failed, again.made) == ((), len(ALL_SUBSETS))
    assert server.requests
    assert all(broken.text in request.text for request in server.requests)
