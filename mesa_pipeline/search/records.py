"""What a search knows: the archive of valid candidates, the rejected ones, and what each arm has brought."""

from dataclasses import dataclass
from typing import Literal

from mesa_pipeline.evaluation.evaluate import Evaluation

Slot = Literal["exploit", "explore", "repair"]


@dataclass(frozen=True)
class ArchiveEntry:
    """A valid candidate in the archive.

    Attributes:
        id: ``all`` for the policy the archive starts with, else iteration and slot, such as ``07-explore``.
        iteration: From 1; 0 for ``all``.
        slot: Why it was proposed; ``None`` for ``all``.
        direction: Id of its arm; ``None`` for ``all``.
        parents: Ids of the entries it was made from.
        hypothesis: What its author expected, in a sentence.
        source: Its code.
        train: What it is worth on the questions it was fitted to.
        validation: What it is worth on those it is compared on.
        behaviour: Hash of its choices on train and validation; equal for policies that choose alike.
        off_direction: Inputs of its direction that it does not read.
    """

    id: str
    iteration: int
    slot: Slot | None
    direction: str | None
    parents: tuple[str, ...]
    hypothesis: str
    source: str
    train: Evaluation
    validation: Evaluation
    behaviour: str
    off_direction: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rejection:
    """A candidate that did not enter the archive.

    Attributes:
        id: Iteration and slot.
        iteration: From 1.
        direction: Id of its arm.
        reason: Why it is invalid, or which entry it repeats; escaped and short, since a policy may have written it.
        duplicate_of: Id of the entry it behaves like; ``None`` for an invalid one.
        source: Its code.
    """

    id: str
    iteration: int
    direction: str
    reason: str
    duplicate_of: str | None
    source: str


@dataclass(frozen=True)
class ArmStatistics:
    """What a direction has brought (paper, Eq. 9).

    Attributes:
        direction: Its id.
        pulls: n_a, candidates evaluated.
        value: Mean (or best, by setting) validation objective; the frontier's for an unvisited arm.
        bonus: What exploration adds.
        invalid: Invalid candidates.
        duplicates: Candidates that behaved as an earlier one.
    """

    direction: str
    pulls: int
    value: float
    bonus: float
    invalid: int = 0
    duplicates: int = 0

    @property
    def ucb(self) -> float:
        return self.value + self.bonus
