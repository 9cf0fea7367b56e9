"""Text that others wrote, set into a prompt so that it cannot pass for the prompt's own words.

Policies, questions and evidence may hold anything: a fence's end, a heading, the spelling of a chat template's control token,
invisible characters that turn text round. Here each piece stands between fences longer than any run of backticks in it, and
what would steer a terminal, a reader or a tokenizer is taken out.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

REPLACEMENT = "\ufffd"
CUT = " [...]"
_KEPT = "\n\t"
_STEERING_CATEGORIES = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
_NAMED_TOKENS = "s|bos|eos|pad|unk|think|tool_call|tool_response|start_of_turn|end_of_turn"
_CONTROL_TOKEN = re.compile(
    r"<(?=[|\uff5c][^|\uff5c<>\s]{1,40}[|\uff5c]?>)"
    r"|<(?=[^|\uff5c<>\s]{1,40}[|\uff5c]>)"
    rf"|(?<!\?P)<(?=/?(?:{_NAMED_TOKENS})>)"  # but (?P<s>...) is a group of a regular expression
    r"|\[(?=/?(?:INST|SYS)\])",
    re.IGNORECASE,
)
"""Where a token such as ``<|im_end|>``, ``<end_of_turn>``, ``</s>`` or ``[INST]`` begins."""


def cleaned(text: str, limit: int) -> str:
    """The text without characters that steer, control tokens broken by a blank, cut to ``limit`` characters and a mark.

    Valid Unicode whatever was given; text without any of these comes back as it was.
    """
    shown = text[:limit]
    if not shown.isascii() or not shown.isprintable():
        shown = "".join(REPLACEMENT if _steers(char) else char for char in shown)
    shown = _CONTROL_TOKEN.sub(lambda found: f"{found.group()} ", shown)
    return shown + (CUT if len(text) > limit else "")


def record(limit: int, **fields: Any) -> str:
    """One line of JSON with every text in it, at any depth, cleaned and cut to ``limit`` characters."""
    return json.dumps(_cleaned_value(fields, limit), ensure_ascii=False, separators=(", ", ": "))


def fenced(language: str, lines: Sequence[str]) -> str:
    """A block of lines that nothing in them can end."""
    content = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{content}\n{fence}\n"


def _cleaned_value(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return cleaned(value, limit)
    if isinstance(value, dict):
        return {cleaned(key, limit): _cleaned_value(item, limit) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned_value(item, limit) for item in value]
    return value


def _steers(char: str) -> bool:
    return char not in _KEPT and unicodedata.category(char) in _STEERING_CATEGORIES
