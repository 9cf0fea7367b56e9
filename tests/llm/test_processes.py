"""Several processes on one cache and one ledger, and processes that die."""

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from mesa_pipeline.llm.cache import ReplyCache
from mesa_pipeline.llm.ledger import Ledger
from tests.llm.misbehaving_server import Exchange, MisbehavingServer, say, well

REPOSITORY = Path(__file__).resolve().parent.parent.parent
WAIT_SECONDS = 120


def start(server: MisbehavingServer, folder: Path, first: int, last: int, file_bytes: int = 2**40) -> "subprocess.Popen[str]":
    arguments = [server.base_url, folder, first, last, file_bytes]
    command = [sys.executable, "-m", "tests.llm.client_process", *map(str, arguments)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(command, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, text=True)


def test_processes_share_a_cache_and_a_ledger(server: MisbehavingServer, tmp_path: Path):
    """Three processes that begin at once, on files that none has made yet, with texts that overlap."""
    clients = [start(server, tmp_path, first, first + 40) for first in (0, 20, 40)]
    errors = [client.communicate(timeout=WAIT_SECONDS)[1] for client in clients]
    assert [client.returncode for client in clients] == [0, 0, 0], errors
    asked = {request.text for request in server.requests}
    assert asked == {f"text {k}" for k in range(80)}
    (spent,) = Ledger(tmp_path / "ledger.sqlite").spending()
    assert spent.attempts == len(server.requests)
    assert spent.attempts + spent.replayed == 120
    cache = ReplyCache(tmp_path / "replies.sqlite")
    for text in sorted(asked):
        known = cache.get({"model": "m", "messages": [{"role": "user", "content": text}]})
        assert known is not None and known.text == text.upper()


def test_a_rerun_after_kill_9_asks_for_nothing_that_was_answered(server: MisbehavingServer, tmp_path: Path):
    """Killed in the middle of its eighth call; the ninth text was never asked for."""
    arrived = threading.Event()

    def never(exchange: Exchange) -> None:
        arrived.set()
        exchange.closing.wait()
        exchange.cut()

    server.script = [well] * 7 + [never]
    client = start(server, tmp_path, 0, 12)
    assert arrived.wait(WAIT_SECONDS)
    client.kill()
    client.communicate(timeout=WAIT_SECONDS)
    rerun = start(server, tmp_path, 0, 12)
    assert rerun.communicate(timeout=WAIT_SECONDS)[1] == ""
    times = Counter(request.text for request in server.requests)
    assert times == {f"text {k}": 2 if k == 7 else 1 for k in range(12)}
    (spent,) = Ledger(tmp_path / "ledger.sqlite").spending()
    assert (spent.attempts, spent.replayed) == (12, 7)


def test_a_full_disk_is_an_error_with_a_remedy_and_keeps_what_was_there(server: MisbehavingServer, tmp_path: Path):
    """No file may grow beyond 300 kB, which is as good as a full disk to SQLite."""
    server.otherwise = say("x" * 50_000)
    client = start(server, tmp_path, 0, 40, file_bytes=300_000)
    error = client.communicate(timeout=WAIT_SECONDS)[1]
    assert client.returncode != 0
    assert "ArtifactError: cannot use" in error
    assert "free space or choose another --workspace" in error
    paid = len(server.finished)
    assert 1 <= paid < 20
    rerun = start(server, tmp_path, 0, paid - 1)
    assert rerun.communicate(timeout=WAIT_SECONDS)[1] == ""
    assert len(server.finished) == paid
