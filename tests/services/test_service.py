"""A program as a service: its log, its end, and that it ends with its owner."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mesa_pipeline.services.groups import Identity
from mesa_pipeline.services.service import Program, ProgramService, tail
from tests.services.dagster_client import until

SLEEP = "import sys, time; sys.stderr.write('ready\\n'); sys.stderr.flush(); time.sleep(600)"
OWNER = """
import signal, sys, time
from pathlib import Path
from mesa_pipeline.services.service import Program, ProgramService
signal.signal(signal.SIGTERM, signal.SIG_IGN)
service = ProgramService(Program("sleeper", (sys.executable, "-c", sys.argv[1]), {}, Path(sys.argv[2]), lambda began: True))
sys.stdout.write(f"{service.start().pid}\\n")
sys.stdout.flush()
time.sleep(600)
"""


def service(tmp_path: Path, code: str, **more: str) -> ProgramService:
    log = tmp_path / "logs" / "program.log"
    return ProgramService(Program("program", (sys.executable, "-c", code), more, log, lambda began: "ready" in tail(log)))


def test_a_program_is_ready_when_its_probe_says_so_and_gone_when_stopped(tmp_path: Path):
    program = service(tmp_path, SLEEP)
    identity = program.start()
    until(program.is_ready, 60)
    assert program.ended() is None and identity.is_alive
    program.stop(5.0)
    assert not identity.is_alive
    assert program.log.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("code", "said"), [("import sys; sys.exit(7)", "exit code 7"), ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL")]
)
def test_it_is_said_how_a_program_ended(tmp_path: Path, code: str, said: str):
    program = service(tmp_path, code)
    program.start()
    assert until(program.ended, 60) == said


def test_a_program_finds_in_its_environment_what_it_was_given_alone(tmp_path: Path):
    program = service(
        tmp_path, "import os; print('ready', sorted(set(os.environ) - {'LC_CTYPE', '__CF_USER_TEXT_ENCODING'}))", A="1"
    )
    program.start()
    until(program.is_ready, 60)
    assert "ready ['A']" in tail(program.log)
    program.stop(0)


def test_its_owner_was_started_with_signals_ignored_and_it_was_not(tmp_path: Path):
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        program = service(tmp_path, "import signal; print('ready', signal.getsignal(signal.SIGINT))")
        program.start()
    finally:
        signal.signal(signal.SIGINT, previous)
    until(program.is_ready, 60)
    assert "default_int_handler" in tail(program.log)
    program.stop(0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere `mesa down` ends what a killed owner leaves")
def test_a_program_ends_with_its_owner(tmp_path: Path):
    command = [sys.executable, "-c", OWNER, SLEEP, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        child = Identity.of(int(owner.stdout.readline()))
        os.kill(owner.pid, signal.SIGKILL)
    until(lambda: not child.is_alive, 60)


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path):
    log = tmp_path / "log"
    assert tail(log) == ""
    log.write_text("".join(f"line {number}\n\n" for number in range(10_000)))
    assert tail(log).splitlines() == [f"line {number}" for number in range(9994, 10_000)]
