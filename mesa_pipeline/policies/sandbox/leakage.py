"""Finds policies that remember questions instead of learning from them.

A cue is shared by many questions; what stands in one or two alone identifies them. Texts are compared without regard to case
and blanks, as policies compare them.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mesa_pipeline.errors import Violation
from mesa_pipeline.policies.sandbox.canonical import documentation, is_assignment_of
from mesa_pipeline.policies.sandbox.scopes import parse

_HEX = re.compile(r"(?<![0-9a-z])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}(?![0-9a-z])", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True)
class LeakageLimits:
    """Where a cue ends and memory begins.

    Attributes:
        chars: Length from which one literal that is rare among the texts is flagged, if it has ``words`` too.
        words: Number of words from which one is flagged, if it has ``chars`` too.
        common: Number of texts from which a literal is a cue that they share.
        literals: Number of other rare literals that a source may hold: an innocent list of cues has some.
        short: Length from which those are counted.
    """

    chars: int = 12
    words: int = 3
    common: int = 3
    literals: int = 40
    short: int = 4


DEFAULT_LIMITS = LeakageLimits()


class _Literal(NamedTuple):
    """A text in a source, and where it stands."""

    line: int
    column: int
    text: str

    def flagged(self, reason: str) -> Violation:
        return Violation(self.line, self.column, f"flagged as memorisation: {_quoted(self.text)} {reason}")


def memorised_text(source: str, texts: Sequence[str], limits: LeakageLimits = DEFAULT_LIMITS) -> tuple[Violation, ...]:
    """What a gated source remembers of questions and answers, in the order of the source.

    Args:
        source: A source the gate let through.
        texts: Training and validation questions, and answers where they are known.
        limits: Where a cue ends and memory begins.
    """
    known = [normal for normal in map(_normal, dict.fromkeys(texts)) if normal]
    tree = parse(source)
    found: list[Violation] = []
    rare: dict[str, _Literal] = {}
    for literal in _literals(tree):
        matches = _matches(literal.text, known, limits)
        if matches and _is_phrase(_normal(literal.text), limits):
            found.append(
                literal.flagged(f"stands word for word in {matches} of the questions and answers; find a cue that many share")
            )
        elif matches:
            rare.setdefault(_normal(literal.text), literal)
        if reason := _identifier(literal.text):
            found.append(literal.flagged(reason))
    if len(rare) > limits.literals:
        message = (
            f"and others: {len(rare)} words stand in one or two questions each, {limits.literals} at most; "
            "find cues that many share"
        )
        found.append(min(rare.values()).flagged(message))
    return tuple(sorted(found))


def memorised_state(state: Any, texts: Sequence[str], limits: LeakageLimits = DEFAULT_LIMITS) -> tuple[Violation, ...]:
    """Training questions that stand whole inside a fitted state; each is reported at line 1.

    Args:
        state: Any JSON value.
        texts: Training and validation questions.
        limits: ``chars`` is the length from which a question is looked for.
    """
    everything = "\0".join(_normal(text) for text in _strings(state))
    known = {normal: text for text in texts if len(normal := _normal(text)) >= limits.chars}
    whole = [text for normal, text in known.items() if normal in everything]
    return tuple(
        Violation(
            1, 1, f"flagged as memorisation: the state holds the question {_quoted(text)}; keep words or counts, not texts"
        )
        for text in whole
    )


def _is_phrase(normal: str, limits: LeakageLimits) -> bool:
    return len(normal) >= limits.chars and len(normal.split()) >= limits.words


def _matches(literal: str, known: Sequence[str], limits: LeakageLimits) -> int:
    """In how many texts a literal stands, where these are so few that it identifies them; else 0."""
    normal = _normal(literal)
    if len(normal) < limits.short:
        return 0
    count = sum(normal in text for text in known)
    return count if count < limits.common else 0


def _identifier(literal: str) -> str | None:
    is_one = _UUID.search(literal) or _HEX.search(literal)
    return "looks like an identifier; a policy never sees one" if is_one else None


def _literals(tree: ast.Module) -> Iterator[_Literal]:
    """Every text in the source that code could read: docstrings it cannot, and ``META`` it does not need."""
    ignored = {id(node) for node in documentation(tree)}
    for statement in tree.body:
        if not is_assignment_of(statement, "META"):
            for node in ast.walk(statement):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in ignored:
                    yield _Literal(node.lineno, node.col_offset + 1, node.value)


def _strings(state: Any) -> Iterator[str]:
    waiting = [state]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend((*value.keys(), *value.values()))
        elif isinstance(value, list):
            waiting.extend(value)


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


def _quoted(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:57] + "...")
