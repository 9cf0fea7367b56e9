"""What happened while a question was answered, as spans: kept in memory, then as a line of a journal in the workspace.

Nothing here waits for MLflow. ``Tracker.traces`` records the journal's traces there when it is there
(docs/decisions/0115-traces-of-questions.md).
"""

import fcntl
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.errors import ArtifactError

SpanKind = Literal["CHAIN", "TOOL", "RETRIEVER", "LLM"]
MAX_TEXT_CHARS = 2000
MAX_ITEMS = 50


@dataclass
class Span:
    """One step of answering.

    Attributes:
        name: What was done, such as ``retrieve vector``.
        kind: What sort of step it is, in MLflow's terms.
        parent: Position of the span it is part of; ``None`` for the whole.
        started: Nanoseconds since 1970.
        ended: The same; 0 while it lasts.
        inputs: What it worked on, by name: JSON values, cut to a bounded size.
        outputs: What came of it.
        attributes: Further figures about it.
        tokens: How many a model ``read`` and ``written``.
        error: Why it failed.
    """

    name: str
    kind: SpanKind
    parent: int | None
    started: int
    ended: int = 0
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    error: str = ""

    def gave(self, **outputs: Any) -> None:
        """Say what came of it."""
        self.outputs |= {name: bounded(value) for name, value in outputs.items()}

    def spent(self, read: int, written: int) -> None:
        """Say how many tokens a model read and wrote."""
        self.tokens = {"read": read, "written": written}

    def has(self, **attributes: Any) -> None:
        """Say more about it."""
        self.attributes |= {name: bounded(value) for name, value in attributes.items()}


@dataclass(frozen=True)
class Trace:
    """All spans of one question, in the order they began; the first is the whole.

    Attributes:
        id: 32 hexadecimal digits, unique.
        spans: At least one.
    """

    id: str
    spans: tuple[Span, ...]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``dataclasses.asdict``.

        Raises:
            TypeError, KeyError: It is none.
        """
        return cls(value["id"], tuple(Span(**span) for span in value["spans"]))


class TraceRecorder:
    """The trace of one question in the making; one thread's alone.

    Args:
        new_id: Makes the trace's id.
        clock: Nanoseconds since 1970.
    """

    def __init__(self, new_id: Callable[[], str] = lambda: uuid.uuid4().hex, clock: Callable[[], int] = time.time_ns) -> None:
        self._id = new_id()
        self._clock = clock
        self._spans: list[Span] = []
        self._open: list[int] = []

    @contextmanager
    def span(self, name: str, kind: SpanKind, **inputs: Any) -> Iterator[Span]:
        """A step, part of the one around it."""
        parent = self._open[-1] if self._open else None
        shown = {name: bounded(value) for name, value in inputs.items()}
        span = Span(name, kind, parent, self._clock(), inputs=shown)
        self._open.append(len(self._spans))
        self._spans.append(span)
        try:
            yield span
        except BaseException as error:
            span.error = bounded(f"{type(error).__name__}: {error}")
            raise
        finally:
            span.ended = self._clock()
            self._open.pop()

    @property
    def trace(self) -> Trace:
        """What has happened so far."""
        return Trace(self._id, tuple(self._spans))


@dataclass(frozen=True)
class TraceJournal:
    """Traces of a workspace, a line each; several processes may append."""

    path: Path

    def append(self, trace: Trace) -> None:
        """Keep a trace; a line that a killed process left unfinished is ended first.

        Raises:
            ArtifactError: It cannot be written.
        """
        line = dump_json(asdict(trace)).encode("ascii") + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.write(line if _ends_whole(file.fileno()) else b"\n" + line)
        except OSError as error:
            raise ArtifactError(f"cannot write {self.path}: {error.strerror}") from error

    def read(self) -> Sequence[Trace]:
        """The traces kept; what is no whole line is left out."""
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [trace for line in lines if (trace := _parsed(line))]


def bounded(value: Any) -> Any:
    """A JSON value of bounded size that any database can hold: without NUL bytes and lone surrogates."""
    if isinstance(value, str):
        cut = value if len(value) <= MAX_TEXT_CHARS else f"{value[:MAX_TEXT_CHARS]} ... ({len(value):,} characters)"
        return cut.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {bounded(str(key)): bounded(item) for key, item in list(value.items())[:MAX_ITEMS]}
    if isinstance(value, list | tuple):
        return [bounded(item) for item in value[:MAX_ITEMS]]
    return value


def _ends_whole(file: int) -> bool:
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"


def _parsed(line: bytes) -> Trace | None:
    try:
        return Trace.from_json(json.loads(line))
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
