"""What a policy's worker sends back, read without trust."""

from dataclasses import dataclass
from typing import Any

from mesa_pipeline import subsets
from mesa_pipeline.errors import SandboxFailure
from mesa_pipeline.policies.sandbox import strict_json

MAX_REASON_CHARS = 300


@dataclass(frozen=True)
class Reply:
    """What a policy chose for one question: a ``mask``, 1..31, or the ``error`` that kept it from choosing."""

    mask: int | None = None
    error: str | None = None


def printable(text: str) -> str:
    """Text from a policy as a person or a prompt may see it: printable ASCII, at most ``MAX_REASON_CHARS`` of it."""
    escaped = text[:MAX_REASON_CHARS].encode("unicode_escape").decode("ascii")
    return escaped if len(escaped) <= MAX_REASON_CHARS else escaped[: MAX_REASON_CHARS - 3] + "..."


def failure(reason: str) -> SandboxFailure:
    """The error to raise for a candidate."""
    return SandboxFailure(printable(reason))


def read_member(content: bytes, phase: str, member: str) -> Any:
    """The member ``member`` of a reply.

    Raises:
        SandboxFailure: The reply reports an error, or is no such object.
    """
    try:
        reply = strict_json.parse(content)
    except ValueError as error:
        raise failure(f"{phase} replied with something that is not JSON: {error}") from None
    if isinstance(reply, dict) and isinstance(reply.get("error"), str):
        raise failure(reply["error"])
    if not isinstance(reply, dict) or list(reply) != [member]:
        raise failure(f"{phase} replied with something else than its result")
    return reply[member]


def read_choices(values: Any, questions: int) -> list[Reply]:
    """One reply a question.

    Raises:
        SandboxFailure: There are not as many replies as questions.
    """
    if not isinstance(values, list) or len(values) != questions:
        found = len(values) if isinstance(values, list) else "no"
        raise failure(f"select gave {found} replies to {questions} questions")
    return [_read_choice(value) for value in values]


def _read_choice(value: Any) -> Reply:
    if isinstance(value, dict) and list(value) == ["error"] and isinstance(value["error"], str):
        return Reply(error=printable(value["error"]))
    if not isinstance(value, list):
        return Reply(error=f"select returned {_kind(value)}; return a list of structures such as ['S', 'T']")
    if not 1 <= len(value) <= len(subsets.STRUCTURE_CODES):
        return Reply(error=f"select returned {len(value)} items; return 1 to {len(subsets.STRUCTURE_CODES)} structures")
    unknown = [item for item in value if not isinstance(item, str) or item not in subsets.STRUCTURE_CODES]
    if unknown:
        known = ", ".join(subsets.STRUCTURE_CODES)
        return Reply(error=printable(f"select returned {ascii(unknown[0])[:80]}, which is none of {known}"))
    return Reply(mask=subsets.encode(value))


def _kind(value: Any) -> str:
    return {type(None): "None", bool: "a truth value", int: "a number", float: "a number", str: "a string"}.get(
        type(value), "an object"
    )
