"""One at a time for each key, so that equal requests made at once become one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Turns:
    """Lets one thread at a time through for each key; keys that nobody waits for are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[str, _Turn] = {}

    @contextmanager
    def of(self, key: str) -> Iterator[None]:
        """Wait for the turn of a key, and have it until the end of the block."""
        with self._lock:
            turn = self._turns.setdefault(key, _Turn())
            turn.claims += 1
        try:
            with turn.lock:
                yield
        finally:
            with self._lock:
                turn.claims -= 1
                if not turn.claims:
                    del self._turns[key]


@dataclass
class _Turn:
    lock: threading.Lock = field(default_factory=threading.Lock)
    claims: int = 0
