"""Takes from a process everything a policy does not need: files, network, other processes, memory and time without end.

The worker loads this file by its path, so it imports the standard library alone. Each layer is put on by asking the kernel and
reports whether the kernel agreed; nothing is concluded from versions. What the layers are worth together is found out by
``attempts``, which tries what must fail.

Sources: ``seccomp(2)``, ``landlock(7)``, ``prctl(2)``; system call numbers from the kernel's tables for x86-64 and arm64.
"""

import contextlib
import ctypes
import os
import platform
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass

JOB_FD = 3
"""Where a confined process finds its one connection; 0 to 2 are the null device."""
UNPRIVILEGED_ID = 65534
"""User and group ``nobody`` of every Linux."""

_MOST_DESCRIPTORS = 1 << 16
"""More than the parent ever has; the system's own limit may be endless, and some systems close them one by one."""
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_SECCOMP_ALLOW, _SECCOMP_KILL_PROCESS, _SECCOMP_EPERM = 0x7FFF0000, 0x80000000, 0x00050001
_LOAD_WORD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _JUMP_IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _THIRD_ARGUMENT_AT = 0, 4, 32
_X32_CALLS_FROM = 0x40000000
_PROT_EXEC = 4
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_LANDLOCK_CREATE_RULESET_VERSION = 1
_LANDLOCK_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of file rights the kernel knows, by the first ABI that has them."""
_LANDLOCK_NETWORK_SINCE, _LANDLOCK_SCOPES_SINCE = 4, 6


@dataclass(frozen=True)
class Machine:
    """One architecture: its audit number and the system calls a worker with everything imported still makes."""

    audit: int
    calls: tuple[int, ...]
    mapping_calls: tuple[int, ...]


MACHINES = {
    # read write close munmap brk rt_sigprocmask rt_sigreturn sched_yield mremap madvise exit futex restart exit_group
    "x86_64": Machine(0xC000003E, (0, 1, 3, 11, 12, 14, 15, 24, 25, 28, 60, 202, 219, 231), (9, 10)),
    "aarch64": Machine(0xC00000B7, (63, 64, 57, 215, 214, 135, 139, 124, 216, 233, 93, 98, 128, 94), (222, 226)),
}
"""``mapping_calls`` are mmap and mprotect, which are refused when they ask for memory that can be executed."""


def confine(job_fd: int, cpu_seconds: int, memory_bytes: int, parent: int) -> list[str]:
    """Confine the calling process for good, and move its one connection to ``JOB_FD``.

    Args:
        job_fd: Connection to keep; every other descriptor is closed.
        cpu_seconds: CPU time it may use; it is killed then, whatever it catches.
        memory_bytes: Its address space.
        parent: Id of the process whose death must be this one's too.

    Returns:
        The layers the kernel put on, such as ``["user", "landlock 7", "seccomp"]``.
    """
    with contextlib.suppress(PermissionError):
        os.setsid()
    _keep_only(job_fd)
    layers = _drop_user()
    _set_limits(cpu_seconds, memory_bytes)
    if sys.platform == "linux":
        layers += _confine_by_kernel(parent)
    return layers


def _keep_only(job_fd: int) -> None:
    if job_fd != JOB_FD:
        os.dup2(job_fd, JOB_FD)
    os.closerange(JOB_FD + 1, _MOST_DESCRIPTORS)


def _drop_user() -> list[str]:
    """Become ``nobody`` where this process is root and may; inside a user namespace it may not."""
    if os.geteuid() != 0:
        return []
    try:
        os.setgroups([])
        os.setresgid(UNPRIVILEGED_ID, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        os.setresuid(UNPRIVILEGED_ID, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
    except OSError:
        return []
    return ["user"]


def _set_limits(cpu_seconds: int, memory_bytes: int) -> None:
    """Lower each limit as far as the system lets us: macOS, for one, refuses a limit on address space."""
    wanted = {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_CPU: (cpu_seconds, cpu_seconds + 1),
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_NOFILE: (JOB_FD + 1, JOB_FD + 1),
        resource.RLIMIT_NPROC: (0, 0),
        resource.RLIMIT_AS: (memory_bytes, memory_bytes),
    }
    if sys.platform == "linux":
        # Landlock's rule set needs one descriptor more; without a new one it cannot be made.
        wanted[resource.RLIMIT_NOFILE] = (JOB_FD + 2, JOB_FD + 2)
    for kind, (soft, hard) in wanted.items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (soft, hard))


def _confine_by_kernel(parent: int) -> list[str]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
    libc.syscall.restype = ctypes.c_long
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before we asked to be told
        os._exit(1)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return []
    return [*_landlock(libc), *_seccomp(libc)]


def _landlock(libc: ctypes.CDLL) -> list[str]:
    """Handle every right there is and grant none: no file, no TCP port, no signal to or abstract socket of others."""
    zero, null = ctypes.c_ulong(0), ctypes.c_void_p(None)
    abi = libc.syscall(ctypes.c_long(_LANDLOCK_CREATE_RULESET), null, zero, ctypes.c_uint(_LANDLOCK_CREATE_RULESET_VERSION))
    if abi < 1:
        return []
    files = (1 << max(rights for since, rights in _LANDLOCK_FILE_RIGHTS.items() if since <= abi)) - 1
    network = 3 if abi >= _LANDLOCK_NETWORK_SINCE else None
    scopes = 3 if abi >= _LANDLOCK_SCOPES_SINCE else None
    fields = [field for field in (files, network, scopes) if field is not None]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    rules = libc.syscall(ctypes.c_long(_LANDLOCK_CREATE_RULESET), attributes, ctypes.c_ulong(len(attributes)), ctypes.c_uint(0))
    if rules < 0:
        return []
    refused = libc.syscall(ctypes.c_long(_LANDLOCK_RESTRICT_SELF), ctypes.c_long(rules), ctypes.c_uint(0))
    os.close(rules)
    return [] if refused else [f"landlock {abi}"]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _seccomp(libc: ctypes.CDLL) -> list[str]:
    machine = MACHINES.get(platform.machine())
    if machine is None:
        return []
    code = filter_program(machine)
    program = _Program(len(code) // 8, code)
    refused = libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0)
    return [] if refused else ["seccomp"]


def filter_program(machine: Machine) -> bytes:
    """The allow-list as classic BPF, 8 bytes an instruction: what is not listed fails with EPERM.

    A call made through another architecture's table kills the process: its numbers mean other calls.
    """
    calls, mappings = machine.calls, machine.mapping_calls
    listed = [_instruction(_JUMP_IF_EQUAL, call, len(calls) - k + len(mappings) + 2) for k, call in enumerate(calls)]
    mapped = [_instruction(_JUMP_IF_EQUAL, call, len(mappings) - k) for k, call in enumerate(mappings)]
    return b"".join(
        (
            _instruction(_LOAD_WORD, _MACHINE_AT),
            _instruction(_JUMP_IF_EQUAL, machine.audit, 1),
            _instruction(_RETURN, _SECCOMP_KILL_PROCESS),
            _instruction(_LOAD_WORD, _NUMBER_AT),
            _instruction(_JUMP_IF_AT_LEAST, _X32_CALLS_FROM, 0, 1),
            _instruction(_RETURN, _SECCOMP_KILL_PROCESS),
            *listed,
            *mapped,
            _instruction(_RETURN, _SECCOMP_EPERM),
            _instruction(_LOAD_WORD, _THIRD_ARGUMENT_AT),
            _instruction(_JUMP_IF_ANY_BIT, _PROT_EXEC, 1),
            _instruction(_RETURN, _SECCOMP_ALLOW),
            _instruction(_RETURN, _SECCOMP_EPERM),
        )
    )


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def attempts(parent: int) -> dict[str, bool]:
    """Try what a policy must never manage; true where it succeeded.

    Args:
        parent: A process to send the null signal to.
    """
    return {
        "open a file": _succeeds(lambda: os.open("/etc/passwd", os.O_RDONLY)),
        "start a process": _succeeds(_fork),
        "open a connection": _succeeds(lambda: socket.socket().close()),
        "signal its parent": _succeeds(lambda: os.kill(parent, 0)),
    }


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _fork() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
