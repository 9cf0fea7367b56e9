"""Finds the phrases of a question that name steps, before they are resolved against a trajectory.

Grammar, over the tokens of the lower-cased question::

    phrase = [cue] unit [designator] [separator] item (joiner [unit] item)*    "between steps 3 and 7"
    item   = number (connector [unit] number)*                                "steps 3-7", "step 3 to step 7"

A unit stands before its number, so "1 step to the right" and "a 5-step plan" name nothing. Every rule looks at a bounded number
of tokens around the ones it consumes, so parsing is linear in the length of the question.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mesa_pipeline.structures.reference_cues import CUE_FILLERS, MAX_FILLERS, Cue, find_cue
from mesa_pipeline.structures.reference_positions import COUNT_WORDS, UNIT_NAMES, Position, find_position
from mesa_pipeline.structures.reference_tokens import ARROWS, Tokens

TO_THE_END = -1
MAX_SEPARATORS = 3
MIN_DIGITS = 4
WEAK_UNITS = {"observation": "observation", "action": "action", "indices": "index"}
UNITS = UNIT_NAMES | WEAK_UNITS
PLURAL_UNITS = frozenset({"steps", "timesteps", "turns", "indices"})
DESIGNATORS = frozenset({"index", "indices", "idx", "id", "ids", "number", "numbers", "no", "nos", "num"})
BRACKETS = {"(": ")", "[": "]"}
HYPHENS = frozenset("-_\u2013")
SEPARATORS = frozenset("#`*'\"([") | HYPHENS
ASSIGNMENTS = frozenset("=:")
QUOTES = frozenset("'\"`\u2018\u201c")
JOIN_WORDS = frozenset({"and", "or", "vs", "versus"})
JOIN_MARKS = frozenset(",/&")
RANGE_WORDS = frozenset({"to", "through", "thru", "until", "till"})
FILLERS = CUE_FILLERS | {"at", "in", "from", "again", "also"}


@dataclass(frozen=True, slots=True)
class Item:
    """One member of a phrase: a number, two ends of a range, or a longer chain; ``TO_THE_END`` closes an open range.

    ``following`` is the position of the first token after it.
    """

    values: tuple[int, ...]
    joined_by: str
    following: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """A unit with its numbers; ``begins_at`` is the position of its first token, the cue where there is one."""

    unit: str
    cue: Cue
    items: tuple[Item, ...]
    begins_at: int
    is_quoted: bool


def find_phrases(tokens: Tokens, last_index: int) -> Iterator[Phrase | Position]:
    """All phrases in the order of the text; ``last_index`` tells how long a step number may be."""
    return _Parser(tokens, last_index).phrases()


@dataclass(frozen=True, slots=True)
class _Opening:
    """Where the first number stands, and the bracket opened before it, if any."""

    number_at: int
    bracket: str | None


@dataclass(frozen=True, slots=True)
class _Number:
    value: int
    following: int


@dataclass(frozen=True, slots=True)
class _Join:
    word: str
    number_at: int


class _Parser:
    def __init__(self, tokens: Tokens, last_index: int) -> None:
        self._tokens = tokens
        self._last_index = last_index
        self._max_digits = max(MIN_DIGITS, len(str(last_index)))
        self._consumed = 0

    def phrases(self) -> Iterator[Phrase | Position]:
        at = 0
        while at < len(self._tokens):
            found = self._phrase(at) or self._position(at)
            if found:
                yield found
            at = max(at + 1, self._consumed)

    def _position(self, at: int) -> Phrase | Position | None:
        position = find_position(self._tokens, at)
        if position is None:
            return None
        phrase = self._phrase(position.unit_at)
        if phrase is None:
            self._consumed = position.unit_at + 1
        return phrase or position

    def _phrase(self, unit_at: int) -> Phrase | None:
        opening = self._opening(unit_at) if self._is_unit(unit_at) else None
        if opening is None:
            return None
        word = self._tokens.text(unit_at)
        items = self._items(opening.number_at, word in PLURAL_UNITS)
        if not items:
            return None
        following = items[-1].following
        after = self._tokens.text(following)
        if word in WEAK_UNITS and after in {"time", "times"}:
            return None
        if self._is_counted(unit_at) and (opening.bracket is None or after != BRACKETS[opening.bracket]):
            return None
        found = find_cue(self._tokens, unit_at, following, self._consumed)
        self._consumed = following
        return Phrase(UNITS[word], found.cue, tuple(items), found.begins_at, self._tokens.text(unit_at - 1) in QUOTES)

    def _is_unit(self, at: int) -> bool:
        """Whether a unit word stands here on its own: "multi-step" and "mark_step" are no units, "time-step" is."""
        if self._tokens.text(at) not in UNITS:
            return False
        is_suffix = self._tokens.is_glued(at) and self._tokens.text(at - 1) in {"-", "_"}
        return not is_suffix or self._tokens.text(at - 2) == "time"

    def _is_counted(self, unit_at: int) -> bool:
        """Whether a number that belongs to no phrase counts the units, as in "over 20 turns (20-43)"."""
        before = unit_at - 1
        if self._tokens.text(unit_at) not in PLURAL_UNITS or before < self._consumed:
            return False
        return self._tokens.kind(before) == "number" or self._tokens.text(before) in COUNT_WORDS

    def _opening(self, unit_at: int) -> _Opening | None:
        at = self._after_designator(unit_at + 1)
        allowed = SEPARATORS | ASSIGNMENTS if at > unit_at + 1 else SEPARATORS
        bracket = None
        for _ in range(MAX_SEPARATORS):
            mark = self._tokens.text(at)
            if mark not in allowed or (mark in HYPHENS and not self._tokens.is_glued(at)):
                break
            bracket = mark if mark in BRACKETS else bracket
            at += 1
        at += self._tokens.text(at) == "from"
        is_weak = self._tokens.text(unit_at) in WEAK_UNITS
        if self._tokens.kind(at) != "number" or (bracket and is_weak):
            return None
        return _Opening(at, bracket)

    def _after_designator(self, at: int) -> int:
        """Position after "index", "no.", "_idx" or "(turn_idx)"; ``at`` itself where none stands there."""
        text = self._tokens.text
        closing = BRACKETS.get(text(at))
        end = at + (closing is not None)
        end += text(end) in UNIT_NAMES and text(end + 1) == "_"
        end += text(end) == "_"
        if text(end) not in DESIGNATORS:
            return at
        end += 1
        end += text(end) == "."
        if closing is None:
            return end
        return end + 1 if text(end) == closing else at

    def _items(self, number_at: int, is_plural: bool) -> list[Item]:
        items: list[Item] = []
        join: _Join | None = _Join("", number_at)
        has_join_word = False
        while join and (item := self._item(join, is_plural)):
            items.append(item)
            has_join_word |= join.word in JOIN_WORDS
            join = self._join(item.following, is_plural, has_join_word)
        return items

    def _item(self, join: _Join, is_plural: bool) -> Item | None:
        number = self._number(join.number_at)
        if number is None:
            return None
        values = [number.value]
        while values[-1] != TO_THE_END and (end := self._range_end(number.following, is_plural)):
            values.append(end.value)
            number = end
        return Item(tuple(values), join.word, number.following)

    def _number(self, at: int) -> _Number | None:
        """A step number, "1,250" included where the trajectory is that long; longer digit runs are ids of other things."""
        if self._tokens.kind(at) != "number":
            return None
        digits = self._tokens.text(at)
        following = at + 1
        while self._tokens.text(following) == "," and self._is_thousands(following + 1, digits):
            digits += self._tokens.text(following + 1)
            following += 2
        return _Number(int(digits), following) if len(digits) <= self._max_digits else None

    def _is_thousands(self, at: int, digits: str) -> bool:
        group = self._tokens.text(at)
        is_glued = self._tokens.is_glued(at) and self._tokens.is_glued(at - 1)
        if not is_glued or self._tokens.kind(at) != "number" or len(group) != 3 or len(digits) > self._max_digits:
            return False
        return int(digits) > 0 and int(digits + group) <= self._last_index

    def _range_end(self, at: int, is_plural: bool) -> _Number | None:
        word = self._tokens.text(at)
        is_connector = self._tokens.kind(at) == "connector"
        if word == "up" and self._tokens.text(at + 1) in {"to", "through"}:
            at += 1
        elif not is_connector and word not in RANGE_WORDS:
            return None
        named = self._named_number(at + 1)
        if named is not None:
            return self._number(named)
        if not is_connector:
            return self._number(at + 1) or self._open_end(at + 1)
        is_tight = self._tokens.is_glued(at) and self._tokens.is_glued(at + 1)
        return self._number(at + 1) if is_plural or is_tight or word in ARROWS else None

    def _named_number(self, at: int) -> int | None:
        """Position of the number in "the end of step 7": the unit is repeated, fillers may stand before it."""
        for unit_at in range(at, at + MAX_FILLERS + 1):
            if self._is_unit(unit_at):
                opening = self._opening(unit_at)
                return opening.number_at if opening else None
            if self._tokens.text(unit_at) not in FILLERS:
                break
        return None

    def _open_end(self, at: int) -> _Number | None:
        at += self._tokens.text(at) == "the"
        if self._tokens.text(at) == "end":
            return _Number(TO_THE_END, at + 1)
        if self._tokens.text(at) in {"last", "final"} and self._tokens.text(at + 1) in UNIT_NAMES:
            return _Number(TO_THE_END, at + 2)
        return None

    def _join(self, at: int, is_plural: bool, has_join_word: bool) -> _Join | None:
        word = self._tokens.text(at)
        if word not in JOIN_WORDS and word not in JOIN_MARKS:
            return None
        after = at + 1
        if word == "," and self._tokens.text(after) in JOIN_WORDS:
            word = self._tokens.text(after)
            after += 1
        after += word == "vs" and self._tokens.text(after) == "."
        named = self._named_number(after)
        if named is not None:
            return _Join(word, named)
        if word == "," and (has_join_word or not (is_plural or self._stands_in_list(after))):
            return None
        return _Join(word, after) if self._tokens.kind(after) == "number" else None

    def _stands_in_list(self, number_at: int) -> bool:
        """Whether a number after a comma is a further step ("step 3, 4, and 5") and no count ("at step 3, 4 rows")."""
        following = self._tokens.text(number_at + 1)
        return not following[:1].isalpha() or following in JOIN_WORDS or following in RANGE_WORDS
