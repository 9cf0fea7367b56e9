"""Ctrl-C while an endpoint hangs: the command ends at once, and says how to go on."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.llm.misbehaving_server import Exchange, MisbehavingServer

WAIT_SECONDS = 60
LISTENING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started the tests may ignore it
from mesa_pipeline.cli import main
main()
"""


@pytest.mark.parametrize("in_flight", [1, 4])
def test_requests_in_flight_are_not_waited_for(in_flight: int, tmp_path: Path):
    arrived = threading.Semaphore(0)

    def never(exchange: Exchange) -> None:
        arrived.release()
        exchange.closing.wait()
        exchange.cut()

    with MisbehavingServer(otherwise=never) as server:
        settings = (
            f"llm.chat.base_url={server.base_url}",
            f"llm.chat.max_concurrency={in_flight}",
            "structures.summary.builder=llm",
            "datasets.synthetic.episodes=5",
            "datasets.synthetic.steps=10",
        )
        shared = [*(f"--set={setting}" for setting in settings), "--workspace", str(tmp_path)]
        mesa = [sys.executable, "-c", LISTENING]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
        subprocess.run([*mesa, "ingest", *shared], cwd=REPOSITORY, env=environment, check=True, capture_output=True)
        build = subprocess.Popen(
            [*mesa, "build", "--structure", "S", *shared], cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, text=True
        )
        try:
            for _ in range(in_flight):
                assert arrived.acquire(timeout=WAIT_SECONDS)
            build.send_signal(signal.SIGINT)
            said = build.communicate(timeout=WAIT_SECONDS)[1]
        finally:
            build.kill()
    assert build.returncode == 130
    assert said.strip().endswith("interrupted; run the same command again to continue")
