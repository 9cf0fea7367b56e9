"""What the structures' requests to language models have in common: their prompt files, and asking once more."""

import json
from functools import cache
from pathlib import Path

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.llm import Message
from mesa_pipeline.llm.prompts import Prompt

FOLDER = Path(__file__).parent / "prompts"
ASKS = 2
"""A reply that cannot be read is asked for once more, in other words: the same words would get the same reply."""


@cache
def load_prompt(name: str) -> Prompt:
    """The prompt of a name, from the files beside this module; read once, so that a process asks in the words it signs with."""
    return Prompt.load(FOLDER / f"{name}.md")


def prompts_fingerprint(*names: str) -> str:
    """Changes with the wording of any of the prompts, or of what is said when asking once more."""
    return fingerprint([load_prompt(name).fingerprint for name in (*names, "reminder")])


def user_message(text: str, ask: int) -> Message:
    """What the user says; from the second time on with the reminder to keep to the form.

    Args:
        text: The request.
        ask: How often it was made before.
    """
    return Message("user", text if ask == 0 else f"{text}\n\n{load_prompt('reminder').text}")


def as_json(value: object) -> str:
    """JSON on one line, other scripts as they are; valid Unicode, whatever was read."""
    return valid_unicode(json.dumps(value, ensure_ascii=False))


def valid_unicode(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")
