"""What went wrong with a request to an endpoint, and whether trying again can help."""

from dataclasses import dataclass
from typing import Literal

from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

RETRIED_STATUS = frozenset({408, 409, 425, 429})
REFUSED_STATUS = frozenset({401, 403, 404})
OVERFLOW_WORDS = ("context", "too long", "maximum", "exceed", "too many tokens")
MAX_MESSAGE_CHARS = 300
MAX_RETRY_AFTER = 120.0
Kind = Literal["passing", "unreachable", "refused", "overflow", "lasting"]


@dataclass(frozen=True)
class Trouble:
    """Why a request brought no reply.

    Attributes:
        kind: ``passing``: the endpoint is busy or broken for now. ``unreachable``: nobody answers at all. ``refused``: it does
            not let us in or has no such model. ``overflow``: the conversation is longer than the model's context. ``lasting``:
            this request will never go well.
        message: In a line, without any secret.
        retry_after: Seconds the endpoint asked us to wait; ``None`` where it did not say.
    """

    kind: Kind
    message: str
    retry_after: float | None = None


def trouble_of(error: APIError) -> Trouble:
    """What an error of the client library means."""
    if isinstance(error, APITimeoutError):
        return Trouble("passing", "no whole reply in time")
    if isinstance(error, APIConnectionError):
        cause = error.__cause__
        refused = "refused" in str(cause).lower() or "name or service" in str(cause).lower()
        return Trouble("unreachable" if refused else "passing", f"connection lost ({type(cause).__name__})")
    if isinstance(error, APIStatusError):
        return _of_status(error)
    return Trouble("passing", f"unreadable reply ({type(error).__name__})")


def _of_status(error: APIStatusError) -> Trouble:
    said = " ".join(str(error.message).split())[:MAX_MESSAGE_CHARS]
    message = f"HTTP {error.status_code}: {said}"
    if error.status_code in RETRIED_STATUS or error.status_code >= 500:
        return Trouble("passing", message, _retry_after(error))
    if error.status_code in REFUSED_STATUS:
        return Trouble("refused", message)
    if error.status_code in (400, 413) and any(word in said.lower() for word in OVERFLOW_WORDS):
        return Trouble("overflow", message)
    return Trouble("lasting", message)


def _retry_after(error: APIStatusError) -> float | None:
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)
