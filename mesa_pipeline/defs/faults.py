"""When a step is tried again after a fault that may pass."""

import hashlib

import dagster as dg

from mesa_pipeline.config.settings import RetrySettings
from mesa_pipeline.errors import MesaError, WorkspaceBusy


def retry_after(error: MesaError, run: str, attempt: int, settings: RetrySettings) -> dg.RetryRequested:
    """The request to try a step again.

    A busy workspace is looked at again and again, as whoever works there needs the time it needs; a server is given twice as
    long each time. Raised instead of setting a ``RetryPolicy``, which would try again after a bug too.

    Args:
        error: What happened; transient.
        run: Id of the run; two runs do not return at the same moment.
        attempt: Attempts before this one.
        settings: Limits and pauses.
    """
    if isinstance(error, WorkspaceBusy):
        return dg.RetryRequested(settings.busy_limit, settings.busy_seconds * _spread(run, attempt))
    doubled = min(settings.backoff_seconds * 2.0 ** min(attempt, 60), settings.max_backoff_seconds)
    return dg.RetryRequested(settings.limit, doubled * _spread(run, attempt))


def _spread(run: str, attempt: int) -> float:
    """Between a half and one; the same for the same attempt of a run."""
    return 0.5 + 0.5 * hashlib.sha256(f"{run} {attempt}".encode()).digest()[0] / 255
