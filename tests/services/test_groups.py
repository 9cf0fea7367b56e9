"""Process groups are found and ended whole, and a process id is not taken for the process that had it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from mesa_pipeline.services.groups import Identity, end_families, family, memory_bytes
from tests.services.dagster_client import until

STUBBORN_FAMILY = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
sys.stdout.write(f"{child.pid}\\n")
sys.stdout.flush()
time.sleep(600)
"""


@pytest.fixture
def leader() -> Iterator["subprocess.Popen[str]"]:
    """A process that ignores SIGTERM, with a child in its group."""
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN_FAMILY], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.child = int(process.stdout.readline())  # type: ignore[attr-defined]
        yield process
        end_families([Identity(process.pid, 0.0)], 0)
        process.kill()


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_family_is_ended_though_it_will_not(leader):
    identity = Identity.of(leader.pid)
    assert {process.pid for process in family(identity)} == {leader.pid, leader.child}
    assert memory_bytes(identity) > 2**20
    assert end_families([identity], 0.2) == 2
    assert gone(leader.pid) and gone(leader.child)
    assert end_families([identity], 0.2) == 0


def test_what_a_killed_leader_leaves_is_found(leader):
    identity = Identity.of(leader.pid)
    os.kill(leader.pid, signal.SIGKILL)
    leader.wait()
    assert not identity.is_alive
    assert [process.pid for process in family(identity)] == [leader.child]
    assert end_families([identity], 5.0) == 1
    until(lambda: gone(leader.child))


def test_a_later_process_with_the_same_id_is_another():
    own = Identity.of(os.getpid())
    assert own.is_alive
    assert not Identity(own.pid, own.began - 3600).is_alive
    later = Identity(os.getpgid(0), psutil.Process().create_time() + 3600)
    assert os.getpid() not in {process.pid for process in family(later)}


def test_there_is_no_identity_of_nothing():
    with pytest.raises(ProcessLookupError):
        Identity.of(2**22 + 1)
