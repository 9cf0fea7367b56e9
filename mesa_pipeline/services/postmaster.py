"""What a killed PostgreSQL leaves behind: the file with its process id, or itself when only its owner was killed."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

SECONDS = (30.0, 10.0, 10.0)
SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)


def end_orphan(data: Path) -> None:
    """End the server that still runs on a data folder, and wait until it is gone; forget one that is gone.

    PostgreSQL itself refuses to start beside another one and knows a stale file, except where the process id now is that of
    another process of the same user.

    Args:
        data: The data folder; may be missing.
    """
    file = data / "postmaster.pid"
    pid = _recorded(file)
    if pid is None:
        return
    for number, seconds in zip(SIGNALS, SECONDS, strict=True):
        if not _serves(pid, data):
            break
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while _serves(pid, data) and time.monotonic() < deadline:
            time.sleep(0.05)
    if _exists(pid) and not _serves(pid, data):
        file.unlink(missing_ok=True)


def _recorded(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="utf-8", errors="replace").split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _serves(pid: int, data: Path) -> bool:
    """Whether the process is a PostgreSQL on that data; its own command line says so, and a zombie has none."""
    if Path("/proc/self/cmdline").exists():
        try:
            return os.fsencode(data) in Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
    shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, check=False, timeout=10)
    return b" -D " + os.fsencode(data) + b" " in shown.stdout
