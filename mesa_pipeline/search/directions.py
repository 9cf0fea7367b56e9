"""Prior directions: the arms of the search (paper, Section 4.2 and Appendix D).

A direction names an observable signal and a mechanism; it never says which structures are right. To add one: a record here and
a text file of the same id under ``guidance/``. The set is fixed for a run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Mechanism = Literal["infer demand", "estimate utility", "construct subset", "balance robustness and cost", "any"]
GUIDANCE_FOLDER = Path(__file__).parent / "guidance"
FREE = "free"


@dataclass(frozen=True)
class Direction:
    """One arm.

    Attributes:
        id: Name, such as ``lexical-rules``.
        signal: What is observed, in a phrase.
        mechanism: What the signal is used for.
        inputs: Inputs a policy of this direction must read, as named in ``search.conformance``; empty where any will do.
        guards_against: The mistake it is meant to avoid.
    """

    id: str
    signal: str
    mechanism: Mechanism
    inputs: tuple[str, ...]
    guards_against: str

    @property
    def guidance(self) -> str:
        """What a proposer is told, from ``guidance/<id>.md``."""
        return (GUIDANCE_FOLDER / f"{self.id}.md").read_text(encoding="utf-8")
