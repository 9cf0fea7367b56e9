"""How a worker is spoken to: a request is a line of JSON, and so is its reply, ``{"result": ...}`` or ``{"error": ...}``.

Whatever packages print goes to the log. Workers live in environments of their own, so nothing here knows of mesa_pipeline.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

SECONDS_BETWEEN_LOOKS = 1.0
Method = Callable[[Mapping[str, Any]], Any]


def nothing() -> None:
    """Where there is nothing to put away."""


def serve(methods: Mapping[str, Method], at_end: Callable[[], None] = nothing, on_death: Callable[[], None] = nothing) -> None:
    """Answer requests until there are no more.

    Args:
        methods: What is called for the ``method`` of a request, with the whole request.
        at_end: Called after the last request.
        on_death: Called when the driver is dead (from another thread), or wants no more of this process, just before it ends.
    """
    signal.signal(signal.SIGTERM, lambda *_: _end(on_death))
    threading.Thread(target=_end_with, args=(os.getppid(), on_death), daemon=True).start()
    try:
        _serve(methods)
    finally:
        at_end()


def _serve(methods: Mapping[str, Method]) -> None:
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for line in sys.stdin:
            replies.write(json.dumps(_reply(methods, line)) + "\n")
            replies.flush()


def _end_with(driver: int, on_death: Callable[[], None]) -> None:
    """End at once when the driver does, also in the middle of a request."""
    while os.getppid() == driver:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    _end(on_death)


def _end(on_death: Callable[[], None]) -> None:
    try:
        on_death()
    finally:
        os._exit(1)


def _reply(methods: Mapping[str, Method], line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
        return {"result": methods[request["method"]](request)}
    except Exception as error:  # whatever a package raises: the driver says what becomes of it
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}
