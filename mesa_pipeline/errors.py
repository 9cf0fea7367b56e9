"""Every error this package raises on purpose.

::

    MesaError                 something the person can act on; shown without a traceback, exit code 2
    ├── ConfigError           a setting is unknown, of the wrong type, or out of range
    ├── DataError             an input file is missing, malformed, or breaks the data model
    ├── MissingDependency     an optional package or service is not there; names the install command
    ├── ArtifactError         something a stage needs has not been made yet, or is damaged
    │   └── WorkspaceBusy     another process works in the same workspace
    ├── PolicyError           a policy broke its contract
    └── WorkFailed            work went on, but some items failed; the message counts and lists them

A message says what is wrong, where, and what to do next.
"""


class MesaError(Exception):
    """Base class: a problem with a remedy, worth one clear message rather than a traceback."""


class ConfigError(MesaError):
    """A setting is unknown, of the wrong type, or out of range."""


class DataError(MesaError):
    """An input file is missing, malformed, or breaks the data model."""


class MissingDependency(MesaError):
    """An optional package or service is not there."""


class ArtifactError(MesaError):
    """An artifact a stage needs has not been made yet, or is damaged."""


class WorkspaceBusy(ArtifactError):
    """Another process works in the same workspace."""


class PolicyError(MesaError):
    """A policy broke its contract."""


class WorkFailed(MesaError):
    """Some items of a stage failed; the rest is done and stored. Rerunning retries just those."""
