"""What the kernel refuses a policy that has climbed out of Python, on whole, on crippled and on unprivileged systems.

The crippled and the unprivileged systems are made by running another host under a filter, or as another user.
"""

import os
import platform
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from mesa_pipeline.errors import SandboxFailure
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.policies.sandbox.lockdown import MACHINES, filter_program
from tests.policies.sandbox.hostile import REACH
from tests.policies.sandbox.weak_host import FORBID, WEAKEN

REPOSITORY = Path(__file__).resolve().parents[3]
linux = pytest.mark.skipif(sys.platform != "linux", reason="seccomp and Landlock are Linux's")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")


def outcome(sandbox: Sandbox, attempt: str) -> str:
    """What an expression of ``reach`` comes to in a confined process."""
    with pytest.raises(SandboxFailure) as caught:
        sandbox.select(REACH + f"raise ValueError('managed: ' + repr({attempt}))\n", {}, b"[]")
    return str(caught.value)


MODULE = "reach('sys').modules"
ATTEMPTS = [
    # files
    *("reach('open')('/etc/passwd', 0)", "reach('open')('/proc/self/mem', 0)", "reach('open')('/proc/1/environ', 0)"),
    *("reach('listdir')('/')", "reach('stat')('/')", "reach('open')('/tmp/x', 65)", "reach('unlink')('/tmp/x')"),
    *("reach('chdir')('/')", "reach('mkdir')('/tmp/x')", "reach('getxattr')('/', 'a')", "reach('memfd_create')('x')"),
    # processes
    *("reach('fork')()", "reach('execv')('/bin/true', ['true'])", "reach('posix_spawn')('/bin/true', ['true'], {})"),
    *("reach('system')('true') and 1 / 0", "reach('kill')(1, 0)", "reach('kill')(reach('getpid')(), 0)"),
    *("reach('killpg')(0, 9)", "reach('pidfd_open')(1)", "reach('setuid')(0)", "reach('setsid')()", "reach('nice')(-1)"),
    f"{MODULE}['_thread'].start_new_thread(int, ())",
    # connections and descriptors
    *(f"{MODULE}['_socket'].socket(2, 1)", f"{MODULE}['_socket'].socket(2, 2)", f"{MODULE}['_socket'].socket(1, 1)"),
    *(f"{MODULE}['_socket'].socketpair()", "reach('pipe')()", "reach('dup')(3)", "reach('sendfile')(3, 3, 0, 1)"),
    # chance, signals and limits
    *("reach('urandom')(8)", f"{MODULE}['signal'].signal(24, 1)", f"{MODULE}['resource'].setrlimit(0, (-1, -1))"),
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_what_a_policy_does_not_need_is_refused(confined: Sandbox, attempt: str) -> None:
    assert "managed" not in outcome(confined, attempt)


def test_what_is_refused_is_there_to_be_tried(confined: Sandbox) -> None:
    """The attempts fail for the kernel's reason, not for a misspelt name."""
    assert "managed" in outcome(
        confined, f"({MODULE}['_thread'], {MODULE}['_socket'], {MODULE}['signal'], {MODULE}['resource'])"
    )
    for attempt in ATTEMPTS:
        assert "AttributeError" not in outcome(confined, attempt)
        assert "KeyError" not in outcome(confined, attempt)


def test_a_policy_holds_one_connection_and_no_other_descriptor(confined: Sandbox) -> None:
    for descriptor in (4, 5, 6, 7, 8, 20):
        assert "Bad file descriptor" in outcome(confined, f"reach('write')({descriptor}, b'x')")
    assert "managed: 1" in outcome(confined, "reach('write')(1, b'x')")  # the null device


def test_memory_that_can_be_executed_is_refused(confined: Sandbox) -> None:
    mapping = "reach('sys').modules['ctypes'].CDLL(None).mmap(None, 4096, {prot}, 34, -1, 0)"
    assert outcome(confined, mapping.format(prot=7)).endswith("managed: -1")
    assert not outcome(confined, mapping.format(prot=3)).endswith("managed: -1")


def test_a_call_through_another_table_kills_the_process(confined: Sandbox) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("only x86-64 has a second table of system calls")
    assert outcome(confined, "reach('sys').modules['ctypes'].CDLL(None).syscall(0x40000000 + 39)") == (
        "the worker died in select (signal 31: forbidden system call)"
    )


def test_memory_is_bounded(confined: Sandbox) -> None:
    for bomb in ("[0] * 10**9", "'x' * 4 * 10**9", "list(range(10**9))", "','.join(['x' * 10**6] * 10**4)", "1 << 10**11"):
        assert "MemoryError" in outcome(confined, bomb)


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_the_filter_allows_the_listed_calls_and_no_other(machine: str) -> None:
    """The program run by an interpreter of classic BPF, for every call number of either architecture."""
    program, table = filter_program(MACHINES[machine]), MACHINES[machine]
    allow, refuse, kill = 0x7FFF0000, 0x00050001, 0x80000000
    for call in range(500):
        listed = call in table.calls or call in table.mapping_calls
        assert verdict(program, table.audit, call, 3) == (allow if listed else refuse)
        assert verdict(program, table.audit, call, 7) == (allow if call in table.calls else refuse)
        assert verdict(program, 0x40000003, call, 3) == kill
        assert verdict(program, table.audit, 0x40000000 + call, 3) == kill


def verdict(program: bytes, audit: int, call: int, third_argument: int) -> int:
    """What a filter returns for one system call."""
    data = struct.pack("=iIQ6Q", call, audit, 0, 0, 0, third_argument, 0, 0, 0)
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        if code == 0x06:
            return operand
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, operand)
        else:
            holds = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: bool(accumulator & operand)}[code]
            at += if_true if holds else if_false


HOST = """
from pathlib import Path
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import PolicyError
from mesa_pipeline.policies.sandbox import Sandbox, SandboxFailure, require_strong

{prelude}
sandbox = Sandbox(load_settings(Path({params!r}), environment={{}}).policies.sandbox)
print(sandbox.tier, "|", sandbox.confinement, "|", sandbox.select("def select(s, q): return [s]", "V", b"[1]")[0].mask)
try:
    require_strong(sandbox, "template")
    require_strong(sandbox, "llm")
    print("accepted")
except PolicyError as error:
    print(error)
"""


def another_host(prelude: str, *prefix: str) -> list[str]:
    """What a host says of its sandbox after ``prelude``, started through the command ``prefix``."""
    script = HOST.format(prelude=prelude, params=str(REPOSITORY / "params.yaml"))
    done = subprocess.run([*prefix, sys.executable, "-c", script], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


@linux
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the calls to forbid are numbered for x86-64")
def test_without_landlock_seccomp_alone_is_enough() -> None:
    report, verdict_ = another_host(FORBID + "forbid(444, 445, 446)\n")
    tier, confinement, mask = report.split(" | ")
    assert (tier, mask, verdict_) == ("kernel", "8", "accepted")
    assert "seccomp" in confinement and "Landlock" not in confinement


@linux
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the calls to forbid are numbered for x86-64")
def test_without_either_only_built_in_templates_run() -> None:
    report, refusal = another_host(WEAKEN)
    tier, confinement, mask = report.split(" | ")
    assert (tier, mask) == ("process", "8")
    assert "could open a file" in confinement
    assert refusal.startswith("a language model's code is not run in a weak sandbox (process: ")
    assert refusal.endswith("or accept the risk with policies.sandbox.allow_weak=true")


@linux
@as_root
def test_an_unprivileged_host_confines_as_well_even_under_a_folder_its_workers_cannot_read() -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not installed")
    # The interpreter may lie where only root can go, so this user keeps the one right to read.
    nobody = (setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+dac_read_search")
    report, verdict_ = another_host("", *nobody, "--ambient-caps=+dac_read_search")
    tier, confinement, mask = report.split(" | ")
    assert (tier, mask, verdict_) == ("kernel", "8", "accepted")
    assert "separate user" not in confinement


@linux
@as_root
def test_root_that_may_become_nobody_else_confines_as_well() -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-U", "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces are not to be had")
    report, verdict_ = another_host("", unshare, "-U", "-r")
    assert report.startswith("kernel | kernel: ") and "separate user" not in report
    assert verdict_ == "accepted"
