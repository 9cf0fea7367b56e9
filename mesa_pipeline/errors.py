"""Every error this package raises on purpose.

::

    MesaError                 something the person can act on; shown without a traceback, exit code 2
    ├── ConfigError           a setting is unknown, of the wrong type, or out of range
    │   └── TooFewEpisodes    a rule that the settings ask for needs more episodes than the data has
    ├── DataError             an input file is missing, malformed, or breaks the data model
    ├── MissingDependency     an optional package or service is not there; names the install command
    │   └── Unreachable       a server does not answer, or has no time; it may in a while                        (transient)
    ├── ModelError            a language model gave no reply to one request; others may go well
    ├── SystemFailure         a wrapped package failed on one item; others may go well
    ├── ArtifactError         something a stage needs has not been made yet, or is damaged
    │   └── WorkspaceBusy     another process works in the same workspace                                       (transient)
    ├── PolicyError           a policy broke its contract
    │   ├── SandboxFailure    a policy's code failed, overran a limit or replied nonsense, in one line
    │   └── GateError         its source is refused before it runs; carries each violation with its place
    └── WorkFailed            work went on, but some items failed; the message counts and lists them
        └── WorkerDied        a worker process was killed; what it had finished is stored                        (transient)

A message says what is wrong, where, and what to do next. What is transient may pass by itself: the same call may go well later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class MesaError(Exception):
    """Base class: a problem with a remedy, worth one clear message rather than a traceback.

    Attributes:
        transient: Whether it may pass by itself, so that whoever has time tries again.
    """

    transient: ClassVar[bool] = False


class ConfigError(MesaError):
    """A setting is unknown, of the wrong type, or out of range."""


class TooFewEpisodes(ConfigError):
    """A rule that the settings ask for needs more episodes than the data has."""


class DataError(MesaError):
    """An input file is missing, malformed, or breaks the data model."""


class MissingDependency(MesaError):
    """An optional package or service is not there."""


class Unreachable(MissingDependency):
    """A server does not answer, or has no time for us; it may in a while."""

    transient = True


class ModelError(MesaError):
    """A language model gave no reply to one request: it took too long, refused, or the request was too long for it."""


class SystemFailure(MesaError):
    """A package that runs in a process of its own failed, died, or took too long over one item."""


class ArtifactError(MesaError):
    """An artifact a stage needs has not been made yet, or is damaged."""


class WorkspaceBusy(ArtifactError):
    """Another process works in the same workspace."""

    transient = True


class PolicyError(MesaError):
    """A policy broke its contract."""


class SandboxFailure(PolicyError):
    """A policy's code failed, overran a limit or replied nonsense; the message is short, printable ASCII."""


@dataclass(frozen=True, order=True)
class Violation:
    """One thing in a policy's source that is refused.

    Attributes:
        line: Line of the source, from 1.
        column: Column of that line, from 1.
        message: What is refused and what to write instead.
    """

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


class GateError(PolicyError):
    """A source, of a policy or of a program that searches, is refused before it runs.

    Attributes:
        violations: What is refused, in the order of the source; at least one.
    """

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("the source is refused:\n" + "\n".join(f"- {violation}" for violation in violations))
        self.violations = tuple(violations)


class WorkFailed(MesaError):
    """Some items of a stage failed; the rest is done and stored. Rerunning retries just those."""


class WorkerDied(WorkFailed):
    """A worker process was killed; what it had finished is stored, and the same call goes on from there."""

    transient = True
