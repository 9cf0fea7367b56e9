"""Reads an action as a tool call where it is one."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mesa_pipeline.structures.observation_units import shorten
from mesa_pipeline.types import Step

JSON_CALL = re.compile(r"([\w.-]{1,60})\s*[:(]\s*(\{)")
PLAIN_CALL = re.compile(r"([A-Za-z][\w.-]{1,60})(?:: |\()(?=\S)")


@dataclass(frozen=True, slots=True)
class Action:
    """An action with its parts.

    Attributes:
        text: The action as it stands in the data.
        tool: Name of the tool called; empty where the action is a phrase.
        arguments: Values by name; the name is empty where the call gives none.
    """

    text: str
    tool: str = ""
    arguments: dict[str, str] = field(default_factory=dict)


def parse_action(text: str) -> Action:
    """Recognise ``tool({json})``, ``tool: {json}`` and ``tool: argument``; anything else is a phrase."""
    call = JSON_CALL.match(text)
    if call:
        try:
            arguments, _ = json.JSONDecoder().raw_decode(text, call.start(2))
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            return Action(text, call[1], {str(name): str(value) for name, value in arguments.items()})
    plain = PLAIN_CALL.match(text)
    return Action(text, plain[1], {"": text[plain.end() :].rstrip(")")}) if plain else Action(text)


def compact_action(text: str, max_chars: int) -> str:
    """An action on one line: a tool's name and values, the names of the values only where there are several."""
    action = parse_action(text)
    if not action.tool:
        return shorten(text, max_chars)
    values = [value if len(action.arguments) == 1 else f"{name}={value}" for name, value in action.arguments.items()]
    return shorten(f"{action.tool}: {' '.join(values)}", max_chars)


def common_action(steps: Sequence[Step]) -> str:
    """The action all of several steps share, such as the one a dialogue's turns carry; else empty."""
    actions = {step.action for step in steps}
    return steps[0].action if len(steps) > 1 and len(actions) == 1 else ""
