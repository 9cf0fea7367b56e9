"""The words before a step that turn it into a span: "until step 12", "between steps 3 and 7"."""

from dataclasses import dataclass
from typing import Literal

from mesa_pipeline.structures.reference_tokens import Tokens

Cue = Literal["none", "between", "until", "before", "just before", "after", "just after", "before and after"]

MAX_FILLERS = 4
CUE_FILLERS = frozenset({"the", "both", "of", "start", "end", "beginning", "completion", "executing"})
UNTIL_WORDS = frozenset({"until", "till", "through", "thru"})
ADJACENT_WORDS = frozenset({"immediately", "right", "directly", "just"})
ONWARD_WORDS = frozenset({"onward", "onwards"})
APOSTROPHES = frozenset("'\u2019")
# "by" after one of these names a cause ("triggered by step 5"), not a limit ("by step 5").
CAUSAL_PARTICIPLES = frozenset(
    {
        *("caused", "confirmed", "demonstrated", "enabled", "evidenced", "explained", "followed", "implied", "indicated"),
        *("introduced", "justified", "made", "motivated", "preceded", "produced", "returned", "revealed", "shown"),
        *("suggested", "supported", "triggered"),
    }
)


@dataclass(frozen=True, slots=True)
class FoundCue:
    """A cue and the position of the token where the phrase with it begins."""

    cue: Cue
    begins_at: int


def find_cue(tokens: Tokens, unit_at: int, following: int, floor: int) -> FoundCue:
    """The cue of the phrase whose unit stands at ``unit_at``.

    "before the step 6 query" and "after step 12's action" speak of something that belongs to the step, so they name it alone.

    Args:
        tokens: The question.
        unit_at: Position of the unit word.
        following: Position after the phrase's last number.
        floor: Position of the first token that belongs to no earlier phrase.
    """
    at = unit_at - 1
    while at >= max(floor, unit_at - MAX_FILLERS) and tokens.text(at) in CUE_FILLERS:
        at -= 1
    cue = _cue_at(tokens, at) if at >= floor else "none"
    is_modifier = at == unit_at - 2 and tokens.text(unit_at - 1) == "the"
    is_possessor = tokens.text(following) in APOSTROPHES and tokens.text(following + 1) == "s"
    if cue != "between" and (is_modifier or is_possessor):
        cue = "none"
    if cue == "none":
        return FoundCue("after" if tokens.text(following) in ONWARD_WORDS else "none", unit_at)
    return FoundCue(cue, at)


def _cue_at(tokens: Tokens, at: int) -> Cue:
    word, before = tokens.text(at), tokens.text(at - 1)
    is_adjacent = before in ADJACENT_WORDS
    cue: Cue = "none"
    if word == "between":
        cue = "between"
    elif word == "after" and before == "and" and tokens.text(at - 2) == "before":
        cue = "before and after"
    elif word == "after":
        cue = "just after" if is_adjacent else "after"
    elif word == "since":
        cue = "after"
    elif word == "before" or (word == "to" and before == "prior"):
        cue = "just before" if is_adjacent else "before"
    elif _opens_prefix(word, before):
        cue = "until"
    return cue


def _opens_prefix(word: str, before: str) -> bool:
    if word == "to":
        return before in {"up", "beginning", "start"}
    if word == "by":
        return before not in CAUSAL_PARTICIPLES
    return word in UNTIL_WORDS
