"""Reading what endpoints reply: servers leave out, null and misplace what the protocol promises."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mesa_pipeline.llm import Completion
from mesa_pipeline.llm.ledger import Usage
from mesa_pipeline.llm.troubles import Trouble

MAX_TOKENS = 10**9
"""A count beyond is nonsense."""
MAX_FLOAT32 = float(np.finfo(np.float32).max)
MAX_REASON_CHARS = 40
REASONING_FIELDS = ("reasoning_content", "reasoning")


def parse_reply(text: str) -> Mapping[str, Any]:
    """The JSON object in a reply, an empty one where there is none, as in a reply that was cut."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def usage_of(reply: Mapping[str, Any]) -> Usage:
    """The tokens that a server counts; what is missing or nonsense is 0."""
    usage = _object(reply.get("usage"))
    prompt = _count(usage.get("prompt_tokens"))
    return Usage(
        prompt_tokens=prompt,
        cached_tokens=min(_count(_object(usage.get("prompt_tokens_details")).get("cached_tokens")), prompt),
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def completion_of(reply: Mapping[str, Any], thinking: bool) -> Completion | Trouble:
    """What a chat completion says.

    With thinking off some servers put the whole text where the reasoning would be and leave the content null (vLLM 17349). With
    thinking on, what stands there is no reply.

    Args:
        reply: The JSON object a server sent.
        thinking: Whether the model was to think first.
    """
    choices = reply.get("choices")
    choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
    message = _object(choice.get("message"))
    fields = ("content",) if thinking else ("content", *REASONING_FIELDS)
    texts = [message[field] for field in fields if isinstance(message.get(field), str)]
    text = next(filter(None, texts), "")
    reason = str(choice.get("finish_reason") or "stop")[:MAX_REASON_CHARS]
    if not text and reason == "length":
        return Trouble("lasting", "the longest reply allowed ended before its text began; allow more tokens for this role")
    if not texts:
        return Trouble("passing", "a reply without content")
    usage = usage_of(reply)
    return Completion(
        text=valid_unicode(text),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        finish_reason=valid_unicode(reason),
    )


def vectors_of(reply: Mapping[str, Any], count: int) -> np.ndarray | Trouble:
    """The vectors in a reply to an embeddings request, float32, shape ``(count, dimensions)``, in the order of the texts."""
    data = reply.get("data")
    if not isinstance(data, list) or len(data) != count:
        return Trouble("passing", "not one vector for each text")
    rows = sorted(map(_object, data), key=lambda row: _count(row.get("index")))
    vectors = [row.get("embedding") for row in rows]
    length = len(vectors[0]) if isinstance(vectors[0], list) else 0
    if not length or not all(_is_vector(vector, length) for vector in vectors):
        return Trouble("passing", "vectors that are none, or of unequal lengths")
    return np.array(vectors, dtype=np.float64).astype(np.float32)


def valid_unicode(text: str) -> str:
    """The text with halves of surrogate pairs, which no file or request can hold, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _is_vector(value: Any, length: int) -> bool:
    return isinstance(value, Sequence) and len(value) == length and all(_is_number(number) for number in value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -MAX_FLOAT32 <= value <= MAX_FLOAT32


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if type(value) is int and 0 < value <= MAX_TOKENS else 0
