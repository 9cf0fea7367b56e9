"""How a worker is spoken to: a request is a line of JSON, and so is its reply, ``{"result": ...}`` or ``{"error": ...}``.

Whatever packages print goes to the log. Workers live in environments of their own, so nothing here knows of mesa_pipeline.
"""

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

SECONDS_BETWEEN_LOOKS = 1.0
Method = Callable[[Mapping[str, Any]], Any]


def serve(methods: Mapping[str, Method]) -> None:
    """Answer requests until there are no more.

    Args:
        methods: What is called for the ``method`` of a request, with the whole request.
    """
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for line in sys.stdin:
            replies.write(json.dumps(_reply(methods, line)) + "\n")
            replies.flush()


def _end_with(driver: int) -> None:
    """End at once when the driver does, also in the middle of a request."""
    while os.getppid() == driver:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)


def _reply(methods: Mapping[str, Method], line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
        return {"result": methods[request["method"]](request)}
    except Exception as error:  # whatever a package raises: the driver says what becomes of it
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}
