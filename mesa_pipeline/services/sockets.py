"""Where Unix sockets lie: in a folder with a short name that nobody else can enter."""

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.services.privileges import ServerUser

LONGEST_PATH = 100
"""Bytes. Linux takes socket paths of 107, macOS of 103."""


def socket_folder(data: Path, socket_name: str) -> Path:
    """Where the sockets of the server with that data lie; makes nothing.

    The name is derived from the data's path, which may be deeper than a socket's may be.
    """
    digest = hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:16]
    name = Path(f"mesa-{os.geteuid()}-{digest}", "sockets")
    chosen = Path(tempfile.gettempdir()) / name
    return chosen if len(os.fsencode(chosen / socket_name)) <= LONGEST_PATH else Path("/tmp") / name


def make_socket_folder(folder: Path, user: ServerUser) -> None:
    """Make the folder, for the server's user, in one that only this process's user may enter.

    So it stays closed to other processes of that user, which may be ``nobody``.

    Raises:
        MissingDependency: The outer folder is somebody else's.
    """
    outer = folder.parent
    outer.mkdir(mode=0o700, exist_ok=True)
    found = outer.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise MissingDependency(f"{outer} is no folder of this user, so PostgreSQL's sockets cannot lie in it; remove it")
    outer.chmod(0o700)
    folder.mkdir(mode=0o700, exist_ok=True)
    user.give(folder)


def remove_socket_folder(folder: Path) -> None:
    """Remove the folder where nothing is left in it."""
    for path in (folder, folder.parent):
        try:
            path.rmdir()
        except OSError:
            return
