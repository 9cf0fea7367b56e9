"""Hears whom the process of a wrapped package asks for, and lets it reach this machine alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mesa_pipeline.baselines.environments import WORKERS, WorkerEnvironment

LOCAL = {"127.0.0.1", "localhost", "::1"}
SCRIPT = """
import runpy, sys

def hear(event, arguments):
    if event not in ("socket.getaddrinfo", "socket.connect", "socket.sendto"):
        return
    asked = arguments[0] if event == "socket.getaddrinfo" else arguments[1]
    host = str(asked[0] if isinstance(asked, tuple) else asked)
    with open({heard!r}, "a") as file:
        file.write(host + "\\n")
    if host not in {local!r}:
        raise OSError("nobody is reached from here")

sys.addaudithook(hear)
sys.path.insert(0, {workers!r})
runpy.run_path({script!r}, run_name="__main__")
"""


@contextmanager
def overheard(name: str, folder: Path) -> Iterator[Path]:
    """The workers of a package that start within are heard; gives the file with the hosts they ask for, a line each."""
    heard, listening = folder / "heard", folder / "listening_worker.py"
    heard.touch()
    script = str(WORKERS / f"{name}_worker.py")
    listening.write_text(SCRIPT.format(heard=str(heard), local=LOCAL, workers=str(WORKERS), script=script))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkerEnvironment, "script", listening)
        yield heard


def hosts(heard: Path) -> set[str]:
    """Whom they asked for, beyond this machine; this machine was asked for, or nothing was heard at all."""
    found = set(heard.read_text().splitlines())
    assert found & LOCAL
    return found - LOCAL
