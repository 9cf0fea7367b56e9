"""Making a conversation fit a model's context: the longest message loses its middle, so instructions and question stay."""

from collections.abc import Sequence
from dataclasses import replace

from mesa_pipeline.llm import Message, TokenCounter

MARKER = "\n[... {} characters left out to fit the context ...]\n"
TOKENS_PER_MESSAGE = 8
"""What a chat template adds to a message, generously."""
HEAD_SHARE = 0.6
MAX_CUTS = 12


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
        kept = int(len(content) * max(tokens - excess - TOKENS_PER_MESSAGE, 0) / tokens * 0.98)
        fitted[longest] = replace(fitted[longest], content=cut_middle(content, kept))
    return tuple(fitted)


def cut_middle(text: str, max_chars: int) -> str:
    """The text with its middle left out and a marker there; ``max_chars`` of it are kept. One that is shorter is left whole."""
    if len(text) <= max_chars:
        return text
    head = int(max_chars * HEAD_SHARE)
    tail = text[len(text) - (max_chars - head) :]
    return text[:head] + MARKER.format(len(text) - max_chars) + tail
