"""What writes candidate policies. To add a proposer: a module here, a line in ``open_proposer``.

A proposer sees the training outcomes, the archive, the arms' statistics and the failure cards. Of validation it sees means alone:
shown single validation questions, it would train on the split that selects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.evaluation.failures import FailureCard
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext
from mesa_pipeline.search.directions import Direction

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


@dataclass(frozen=True)
class ProposalRequest:
    """What a proposer is asked for, and all it is told.

    Attributes:
        iteration: From 1.
        slot: Build on what worked, try something else, or repair a recurring error.
        direction: The arm to follow.
        parent: Entry to build on: the arm's best for exploit, the frontier for repair; ``None`` where there is none.
        archive: Every entry so far, in order, ``all`` first.
        rejections: Every candidate that did not enter, in order.
        arms: Statistics of every arm.
        cards: Recurring errors of the frontier, worst first.
        train: Outcomes to learn from.
        context: Token price, most structures, labels, seed of the search.
        seed: For every draw of this proposal; differs for each iteration and slot.
    """

    iteration: int
    slot: Slot
    direction: Direction
    parent: ArchiveEntry | None
    archive: tuple[ArchiveEntry, ...]
    rejections: tuple[Rejection, ...]
    arms: tuple[ArmStatistics, ...]
    cards: tuple[FailureCard, ...]
    train: OutcomeMatrix
    context: FitContext
    seed: int


@dataclass(frozen=True)
class Proposal:
    """A candidate's source, not yet checked.

    Attributes:
        source: The code; its ``META`` names direction, hypothesis and parents.
        exchange: What was said to a language model and what it replied, in order, as ``{"role": ..., "content": ...}``.
        spent: What it cost, such as ``{"calls": 2, "prompt_tokens": 5100}``; empty without a model.
    """

    source: str
    exchange: tuple[Mapping[str, str], ...] = ()
    spent: Mapping[str, int] = field(default_factory=dict)


class Proposer(Protocol):
    """Writes one candidate at a time.

    ``propose`` is a function of the request (and of a model's replies): equal requests give equal sources. What it returns may
    be invalid; it is checked afterwards. ``trusted`` is false for a language model's code, which needs a strong sandbox.

    Raises:
        MissingDependency: The model behind it cannot be reached.
    """

    @property
    def name(self) -> str: ...

    @property
    def trusted(self) -> bool: ...

    def propose(self, request: ProposalRequest) -> Proposal: ...
