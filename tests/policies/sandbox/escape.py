"""How one escape attempt is written down."""

import textwrap
from dataclasses import dataclass

HEAD = 'META = {"direction": "free", "hypothesis": "escape"}\n'
LOOT = """
def loot(found):
    raise ValueError("LOOT %s" % (found,))

def searched(values):
    mark = "".join(["CAN", "ARY-"])
    for value in values:
        if isinstance(value, str) and mark in value and value != mark:
            loot(value)

"""
UNLOCK = """
_library = collections.Counter.__init__.__globals__
loot.__globals__["__builtins__"].update(_library["__builtins__"])
"""
"""Gives the body all of Python's built-in functions, ``import`` and ``class`` included: no restriction is left."""
PASSES = ""


@dataclass(frozen=True)
class Escape:
    """One attempt: its verdict at the gate, and how it ends without one.

    A body that reaches what it must not calls ``loot``, so that the reply says so; ``searched`` does where a planted text is
    among some values. It learns of the machine through the
    question: ``q["meta"]["file"]`` holds a planted text, ``q["meta"]["host"]`` is the host's process id.

    Attributes:
        number: Of the list in the design (section 3.4).
        name: What is tried.
        body: Functions of the policy.
        advice: Words of the gate's message; ``PASSES`` where the gate lets it through.
        ends: Pattern of the outcome without gate: the choice, ``error: ...`` of a question, or ``failed: ...`` of the whole.
        brief: Runs until a limit stops it, so that limit is short.
    """

    number: int
    name: str
    body: str
    advice: str
    ends: str
    brief: bool = False

    @property
    def id(self) -> str:
        return f"{self.number:02d} {self.name}"

    @property
    def source(self) -> str:
        """What the gate is shown."""
        return HEAD + LOOT + self.body

    @property
    def unlocked(self) -> str:
        """What the worker is made to run."""
        return HEAD + LOOT + UNLOCK + self.body


def selecting(statements: str) -> str:
    """``select`` with these statements, choosing S where they come to an end."""
    return f"def select(state, q):\n{textwrap.indent(textwrap.dedent(statements).strip(), '    ')}\n    return ['S']\n"


def fitting(statements: str) -> str:
    """``fit`` with these statements, and a ``select`` that chooses S."""
    return f"def fit(rows, ctx):\n{textwrap.indent(textwrap.dedent(statements).strip(), '    ')}\n\n{selecting('')}"


def returning(expression: str) -> str:
    """``select`` that returns an expression."""
    return f"def select(state, q):\n    return {expression}\n"
