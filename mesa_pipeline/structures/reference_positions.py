"""Steps named by their place rather than their number: "the last 3 steps", "at the first step", "the 5th step"."""

from dataclasses import dataclass
from typing import Literal

from mesa_pipeline.structures.reference_tokens import Tokens

Origin = Literal["first", "last", "ordinal"]

UNIT_NAMES = {"step": "step", "steps": "step", "timestep": "step", "timesteps": "step", "turn": "turn", "turns": "turn"}
COUNTED_UNITS = UNIT_NAMES | {"actions": "action", "observations": "observation"}
ORIGINS: dict[str, Origin] = {"first": "first", "initial": "first", "last": "last", "final": "last"}
COUNT_WORDS = {
    **{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6},
    **{"seven": 7, "eight": 8, "nine": 9, "ten": 10, "twenty": 20},
}
ASKING_WORDS = frozenset({"what", "which", "when", "was", "is", "were", "are"})
RELATIVE_WORDS = frozenset({"when", "where", "that", "which", "index"})
PLACING_WORDS = frozenset({"at", "in", "on", "during", "from", "after", "before", "until", "of", "by", "to"})
DETERMINERS = frozenset({"the", "very", "its", "their"})
MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Position:
    """Steps named by their place.

    Attributes:
        unit: Name of the unit.
        origin: The end that is counted from; ``ordinal`` means the one step at place ``count``, counting from one.
        count: How many steps; ``None`` for a single one without a count ("the last step").
        begins_at: Position of the first token.
        unit_at: Position of the unit, the last token.
    """

    unit: str
    origin: Origin
    count: int | None
    begins_at: int
    unit_at: int


def find_position(tokens: Tokens, at: int) -> Position | None:
    """The phrase that begins at a token, if one does."""
    if tokens.kind(at) == "ordinal":
        return _ordinal(tokens, at)
    origin = ORIGINS.get(tokens.text(at))
    if origin is None:
        return None
    count = _count(tokens, at + 1)
    if count is not None and tokens.text(at + 2) in COUNTED_UNITS:
        return Position(COUNTED_UNITS[tokens.text(at + 2)], origin, count, at, at + 2)
    if tokens.text(at + 1) in {"step", "turn", "timestep"} and _names_a_step(tokens, at, origin):
        return Position(UNIT_NAMES[tokens.text(at + 1)], origin, None, at, at + 1)
    return None


def _ordinal(tokens: Tokens, at: int) -> Position | None:
    digits, unit = tokens.text(at)[:-2], tokens.text(at + 1)
    if unit not in UNIT_NAMES or len(digits) > MAX_DIGITS or int(digits) == 0:
        return None
    return Position(UNIT_NAMES[unit], "ordinal", int(digits), at, at + 1)


def _count(tokens: Tokens, at: int) -> int | None:
    text = tokens.text(at)
    if tokens.kind(at) == "number" and len(text) <= MAX_DIGITS:
        return int(text)
    return COUNT_WORDS.get(text)


def _names_a_step(tokens: Tokens, at: int, origin: Origin) -> bool:
    """ "At the last step" names one; "what was the last step where ..." asks for one; "a first step towards" does neither."""
    before = at - 1
    while before > at - 3 and tokens.text(before) in DETERMINERS:
        before -= 1
    following = tokens.text(at + 2)
    asks = following in RELATIVE_WORDS or tokens.text(at + 3) == "which" or tokens.text(before) in ASKING_WORDS
    return not asks and (origin == "last" or tokens.text(before) in PLACING_WORDS)
