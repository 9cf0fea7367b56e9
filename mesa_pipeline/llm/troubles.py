"""What went wrong with a request to an endpoint, and whether trying again can help."""

import math
import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx2
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

RETRIED_STATUS = frozenset({408, 409, 425, 429})
REFUSED_STATUS = frozenset({401, 403, 404})
OVERFLOW_STATUS = frozenset({400, 413, 422, 500})
"""llama.cpp fails with 500 where the context ends in the middle of a reply."""
OVERFLOW = re.compile(r"context (?:length|size|window)|too long|too many tokens|maximum (?:input|sequence|model) length", re.I)
LIMIT = re.compile(r"context (?:length is|size \(|window of) ?(\d+)", re.I)
COUNTED = re.compile(r"(?<!at least )\b(\d+) (?:in the messages|input tokens)|(?:request \(|resulted in )(\d+) tokens", re.I)
"""The conversation's tokens as vLLM, llama.cpp and OpenAI word it; a count that is said to be "at least" so is none."""
Kind = Literal["passing", "unreachable", "refused", "overflow", "lasting"]


@dataclass(frozen=True)
class Trouble:
    """Why a request brought no reply.

    Attributes:
        kind: ``passing``: the endpoint is busy or broken for now. ``unreachable``: nobody answers at all. ``refused``: it does
            not let us in or has no such model. ``overflow``: the conversation is longer than the model's context. ``lasting``:
            this request will never go well.
        message: What the endpoint said, of any length and content.
        retry_after: Seconds the endpoint asked us to wait; ``None`` where it did not say.
    """

    kind: Kind
    message: str
    retry_after: float | None = None


@dataclass(frozen=True)
class Overflow:
    """How a server words that a conversation is too long; ``None`` for what it leaves out.

    Attributes:
        limit: Tokens of conversation and reply together that it has room for.
        counted: Tokens of the conversation.
    """

    limit: int | None
    counted: int | None


def trouble_of(error: APIError) -> Trouble:
    """What an error of the client library means."""
    if isinstance(error, APIStatusError):
        return _of_status(error)
    cause = error.__cause__
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return Trouble("unreachable", str(cause) or type(cause).__name__)
    if isinstance(error, APITimeoutError):
        return Trouble("passing", "no whole reply in time")
    if isinstance(error, APIConnectionError):
        return Trouble("passing", f"the connection was lost ({type(cause).__name__})")
    return Trouble("passing", f"unreadable reply ({type(error).__name__})")


def overflow_of(message: str) -> Overflow:
    """The figures in what a server said about a conversation that is too long."""
    limit, counted = LIMIT.search(message), COUNTED.search(message)
    return Overflow(
        int(limit[1]) if limit else None,
        int(counted[1] or counted[2]) if counted else None,
    )


def _of_status(error: APIStatusError) -> Trouble:
    status, said = error.status_code, str(error.message)
    message = f"HTTP {status}: {said}"
    if status in OVERFLOW_STATUS and OVERFLOW.search(said):
        return Trouble("overflow", message)
    if status in RETRIED_STATUS or status >= 500:
        return Trouble("passing", message, retry_after(error.response.headers))
    if status in REFUSED_STATUS:
        return Trouble("refused", message)
    return Trouble("lasting", message)


def retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds that an endpoint asks us to wait, given as a number or as a date; ``None`` where there is neither."""
    said = headers.get("retry-after", "")
    try:
        seconds = float(said)
    except ValueError:
        seconds = _seconds_until(said, headers.get("date", ""))
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(then: str, now: str) -> float:
    """By the server's own clock; NaN where a date is missing or unreadable."""
    try:
        return (parsedate_to_datetime(then) - parsedate_to_datetime(now)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return math.nan
