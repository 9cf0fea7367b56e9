"""Prior directions: the arms of the search (paper, Section 4.2 and Appendix D).

A direction names an observable signal and a mechanism; it never says which structures are right. To add one: a record here and
a text file of the same id under ``guidance/``. The set is fixed for a run.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mesa_pipeline.errors import ConfigError

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
        """What a proposer is told, from ``guidance/<id>.md``.

        Raises:
            ConfigError: The file is missing.
        """
        path = GUIDANCE_FOLDER / f"{self.id}.md"
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise ConfigError(f"direction {self.id!r} has no guidance; write it into {path}") from error


_PRIORS = (
    Direction(
        id="lexical-rules",
        signal="words, phrases and the form of the question",
        mechanism="infer demand",
        inputs=("question",),
        guards_against="one generic choice for questions that plainly ask for different things",
    ),
    Direction(
        id="temporal-anchors",
        signal="step numbers, ranges and words of order in the question",
        mechanism="infer demand",
        inputs=("question",),
        guards_against="broad context for a question about one step, or trust in time where the question names none",
    ),
    Direction(
        id="task-metadata",
        signal="labels of the benchmark: domain, task type, question type",
        mechanism="infer demand",
        inputs=("meta",),
        guards_against="one choice for every task, and cells fitted to a handful of questions",
    ),
    Direction(
        id="capability-inference",
        signal="cues of what the question asks for: recall, cause, change of state, abstraction",
        mechanism="infer demand",
        inputs=("question",),
        guards_against="dependence on labels that a person's own question lacks",
    ),
    Direction(
        id="evidence-quality",
        signal="how good each structure's own preview looks for the question",
        mechanism="estimate utility",
        inputs=("previews",),
        guards_against="reading structures whose evidence is empty or off the topic",
    ),
    Direction(
        id="redundancy-complementarity",
        signal="overlap between previews and what each adds to the others",
        mechanism="construct subset",
        inputs=("previews",),
        guards_against="unions that say the same thing twice",
    ),
    Direction(
        id="structure-utility",
        signal="any features, as inputs of a model of what each structure and pair is worth",
        mechanism="estimate utility",
        inputs=("rows",),
        guards_against="deciding on each structure alone, blind to what structures are worth together",
    ),
    Direction(
        id="marginal-credit",
        signal="what adding or removing a structure changed for training questions with the same features",
        mechanism="balance robustness and cost",
        inputs=("rows",),
        guards_against="crediting a structure for what another one brought, and keeping one that distracts",
    ),
    Direction(
        id="analogy",
        signal="likeness of the question to training questions",
        mechanism="estimate utility",
        inputs=("question", "rows"),
        guards_against="cases that no rule names, and brittle boundaries between rules",
    ),
    Direction(
        id="risk-cost-cascade",
        signal="confidence of the choice, support behind it and tokens it would cost",
        mechanism="balance robustness and cost",
        inputs=("rows",),
        guards_against="reading too little where the choice is unsure, and too much where it is not",
    ),
)
_OPTIONAL = (
    Direction(
        id="ensemble",
        signal="agreement between several simple ways to choose",
        mechanism="balance robustness and cost",
        inputs=("rows",),
        guards_against="the mistakes of any one way to choose",
    ),
    Direction(
        id="length-difficulty",
        signal="length of the trajectory and of the question",
        mechanism="infer demand",
        inputs=("steps",),
        guards_against="one size of evidence for short and long histories",
    ),
)
_FREE = Direction(id=FREE, signal="any", mechanism="any", inputs=(), guards_against="nothing in particular")

DIRECTIONS = {direction.id: direction for direction in (*_PRIORS, *_OPTIONAL, _FREE)}
"""Every registered direction by its id: the ten priors, two that a run must name, and ``free`` for a search without priors."""


def open_directions(names: Sequence[str] | None) -> tuple[Direction, ...]:
    """The arms of a run, in the order named.

    Args:
        names: Ids of directions; ``None`` for the ten priors.

    Raises:
        ConfigError: A name is unknown or stands twice.
    """
    if names is None:
        return _PRIORS
    unknown = [name for name in names if name not in DIRECTIONS]
    if unknown:
        raise ConfigError(f"search.directions: {unknown[0]!r} is not a direction; known are {', '.join(DIRECTIONS)}")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ConfigError(f"search.directions: {repeated[0]!r} stands twice; a direction is one arm")
    return tuple(DIRECTIONS[name] for name in names)
