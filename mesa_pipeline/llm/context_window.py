"""Making a conversation fit a model's context: the longest message loses its middle, so instructions and question stay."""

from collections.abc import Sequence
from dataclasses import replace

from mesa_pipeline.llm import Message, TokenCounter

MARKER = "\n[... {} characters left out to fit the context ...]\n"
TOKENS_PER_MESSAGE = 8
"""What a chat template adds to a message, generously."""
HEAD_SHARE = 0.6
MAX_CUTS = 12
CHARS_PER_TOKEN = 16
"""More than any tokenizer averages: what lies beyond never fits, and need not be counted."""
CUT_SHARE = 0.98
"""Of what should fit by proportion: tokens are not spread evenly over a text."""
COUNTED_SHARE = 0.95
"""The same, by another's count."""
UNCOUNTED_SHARE = 0.5
"""What is kept where a server says that a text is too long and not by how much."""


def conversation_tokens(messages: Sequence[Message], counter: TokenCounter) -> int:
    """Tokens of a conversation, with an allowance for the chat template."""
    return sum(counter.count(message.content) + TOKENS_PER_MESSAGE for message in messages)


def fit_conversation(messages: Sequence[Message], counter: TokenCounter, max_tokens: int) -> tuple[Message, ...]:
    """The messages, the longest ones cut in the middle until all have at most ``max_tokens`` together.

    A conversation that fits is returned as it is. One whose other messages leave no room is cut as far as it can be.
    """
    fitted = list(messages)
    for _ in range(MAX_CUTS):
        excess = conversation_tokens(fitted, counter) - max_tokens
        if excess <= 0:
            break
        longest = max(range(len(fitted)), key=lambda k: (len(fitted[k].content), -k))
        content = fitted[longest].content
        tokens = max(counter.count(content), 1)
        room = max(tokens - excess - counter.count(MARKER.format(len(content))), 0)
        kept = int(len(content) * room / tokens * CUT_SHARE)
        fitted[longest] = replace(fitted[longest], content=cut_middle(content, kept))
    return tuple(fitted)


def cut_middle(text: str, max_chars: int) -> str:
    """The text with its middle left out and a marker there; ``max_chars`` of it are kept. One that is shorter is left whole."""
    if len(text) <= max_chars:
        return text
    head = int(max_chars * HEAD_SHARE)
    tail = text[len(text) - (max_chars - head) :]
    return text[:head] + MARKER.format(len(text) - max_chars) + tail


def cut_end(text: str, counter: TokenCounter, max_tokens: int) -> str:
    """The beginning of a text, with at most about ``max_tokens``; one that fits is returned as it is."""
    fitted = text[: max(max_tokens, 0) * CHARS_PER_TOKEN]
    for _ in range(MAX_CUTS):
        if len(fitted.encode("utf-8")) <= max_tokens:  # no token is shorter than a byte
            break
        tokens = counter.count(fitted)
        if tokens <= max_tokens:
            break
        fitted = fitted[: int(len(fitted) * max(max_tokens, 0) / tokens * CUT_SHARE)]
    return fitted


def room_once_refused(tokens: int, room: int, counted: int | None) -> int:
    """How many tokens to keep, as we count them, of what a server refused as too long.

    Args:
        tokens: What was refused, as we count it.
        room: What the server has room for, as it counts.
        counted: What was refused, as the server counts it; ``None`` where it did not say.
    """
    if counted is None:
        return int(min(tokens, room) * UNCOUNTED_SHARE)
    return int(tokens * min(room / max(counted, 1), 1.0) * COUNTED_SHARE)
