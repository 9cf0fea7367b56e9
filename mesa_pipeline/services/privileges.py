"""As whom a server runs that refuses to run as root, and what ends it when its owner dies."""

import os
import pwd
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
UNPRIVILEGED = "nobody"
CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, KILL, SETGID, SETUID, SETPCAP = 0, 1, 2, 5, 6, 7, 8
"""Numbers of capabilities(7)."""


@dataclass(frozen=True)
class ServerUser:
    """The user a server runs as.

    Attributes:
        uid: User id.
        gid: Group id.
        prefix: What is put before a command to run it as that user, in such a way that its owner's death ends it. Where the
            owner is root, the command keeps the one capability that lets it pass folders that only root may pass.
    """

    uid: int
    gid: int
    prefix: tuple[str, ...]

    def give(self, path: Path) -> None:
        """Make the user the owner of a file or folder."""
        if (path.stat().st_uid, path.stat().st_gid) != (self.uid, self.gid):
            os.chown(path, self.uid, self.gid)


def no_server_user() -> str | None:
    """Why no server can run on behalf of this process's user; ``None`` where one can. Only root has to change into another."""
    if os.geteuid() != 0:
        named = _exists(pwd.getpwuid, os.geteuid())
        return None if named else f"PostgreSQL needs a user with a name, and user id {os.geteuid()} has none"
    if sys.platform != "linux" or shutil.which("setpriv") is None:
        return "PostgreSQL refuses to run as root, and changing the user takes Linux and `setpriv` (package util-linux)"
    if not _exists(pwd.getpwnam, UNPRIVILEGED):
        return f"PostgreSQL refuses to run as root, and there is no user {UNPRIVILEGED!r} to run it as"
    held = _capabilities()
    if not {CHOWN, KILL, SETGID, SETUID, SETPCAP} <= held or not {DAC_OVERRIDE, DAC_READ_SEARCH} & held:
        return "PostgreSQL refuses to run as root, and root here lacks the capabilities to run it as another user"
    return None


def server_user() -> ServerUser:
    """The user that servers run as: this process's own, or ``nobody`` where that is root."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    if os.geteuid() != 0:
        return ServerUser(os.geteuid(), os.getegid(), (setpriv, "--pdeathsig=INT", "--") if setpriv else ())
    user = pwd.getpwnam(UNPRIVILEGED)
    passing = "dac_read_search" if DAC_READ_SEARCH in _capabilities() else "dac_override"
    prefix = (
        setpriv or "setpriv",
        f"--reuid={user.pw_uid}",
        f"--regid={user.pw_gid}",
        "--clear-groups",
        f"--inh-caps=-all,+{passing}",
        f"--ambient-caps=-all,+{passing}",
        "--securebits=+no_setuid_fixup",  # access(2), too, then heeds the capability
        "--no-new-privs",
        "--pdeathsig=INT",
        "--",
    )
    return ServerUser(user.pw_uid, user.pw_gid, prefix)


def _exists(look_up: Callable[[T], pwd.struct_passwd], key: T) -> bool:
    try:
        look_up(key)
    except KeyError:
        return False
    return True


def _capabilities() -> set[int]:
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    mask = int(next(line.split()[1] for line in lines if line.startswith("CapEff:")), 16)
    return {number for number in range(mask.bit_length()) if mask >> number & 1}
