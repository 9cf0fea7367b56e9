"""What a report says of a policy search: plain records, filled from the archive by the stage that asks for the report."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mesa_pipeline.evaluation.held_out import TestResult

Status = Literal["evaluated", "duplicate", "invalid"]
SLOTS = ("exploit", "explore", "repair")
INITIAL = "all"
"""Id of the policy every archive starts with."""


@dataclass(frozen=True)
class Worth:
    """What a candidate is worth on validation; ``train_objective`` is that on the questions it was fitted to."""

    score: float
    tokens: float
    structures: float
    objective: float
    train_objective: float


@dataclass(frozen=True)
class Candidate:
    """A policy that was tried.

    Attributes:
        id: ``all`` for the one the archive starts with.
        iteration: From 1; 0 for ``all``.
        slot: Why it was proposed; ``None`` for ``all``.
        direction: Its arm; ``None`` for ``all``.
        status: What became of it.
        worth: What it is worth, for a duplicate that of the one it repeats; ``None`` for an invalid one.
        parents: Ids of those it was made from.
        hypothesis: What its author expected; empty where it was not evaluated.
        reason: Why it did not enter the archive; empty where it did.
        on_front: Whether no other scores as well for as few tokens.
    """

    id: str
    iteration: int
    slot: str | None
    direction: str | None
    status: Status
    worth: Worth | None
    parents: tuple[str, ...] = ()
    hypothesis: str = ""
    reason: str = ""
    on_front: bool = False


@dataclass(frozen=True)
class Arm:
    """What a direction has brought: pulls, mean objective, exploration bonus, and candidates that did not enter."""

    direction: str
    pulls: int
    value: float
    bonus: float
    invalid: int
    duplicates: int


@dataclass(frozen=True)
class Reading:
    """The candidate that is best at some price of a token."""

    lambda_: float
    candidate: str


@dataclass(frozen=True)
class SearchFinding:
    """A finished search.

    Attributes:
        seed: Of the split.
        proposer: What wrote the candidates.
        rule: How the policy was chosen from the archive.
        planned: Candidates planned.
        lambda_: Price of a token.
        candidates: Every one, in order, ``all`` first.
        arms: The directions in order.
        chosen: Id of the one that was frozen.
        manifest_sha256: Names the frozen policy for good, so that its test can be told from one of an earlier policy.
        source: Its code.
        state: What its fit learnt, as JSON for people to read.
        readings: The best candidate at other prices.
        hypervolume: Share of the rectangle from no token to those of ``all``, and from score 0 to 1, under the front.
        bonus_to_spread: Mean exploration bonus as a multiple of the spread of the arms' means; ``None`` while unknown.
        improvements: Ids of those that were the best so far when they were tried, ``all`` first.
    """

    seed: int
    proposer: str
    rule: str
    planned: int
    lambda_: float
    candidates: tuple[Candidate, ...]
    arms: tuple[Arm, ...]
    chosen: str
    manifest_sha256: str
    source: str
    state: str
    readings: tuple[Reading, ...]
    hypervolume: float
    bonus_to_spread: float | None
    improvements: tuple[str, ...] = (INITIAL,)

    @cached_property
    def by_id(self) -> dict[str, Candidate]:
        return {candidate.id: candidate for candidate in self.candidates}

    def test_among(self, tests: Sequence[TestResult]) -> TestResult | None:
        """The test of the frozen policy, if it has been tested as it is now."""
        return next((test for test in tests if test.receipt.manifest_sha256 == self.manifest_sha256), None)

    @property
    def winner(self) -> Candidate:
        return self.by_id[self.chosen]

    @property
    def tried(self) -> tuple[Candidate, ...]:
        """All but ``all``, in order."""
        return tuple(candidate for candidate in self.candidates if candidate.id != INITIAL)

    @property
    def archive(self) -> tuple[Candidate, ...]:
        """Those that were evaluated, ``all`` among them."""
        return tuple(candidate for candidate in self.candidates if candidate.status == "evaluated")

    def count(self, status: Status) -> int:
        """Candidates of a status, without ``all``."""
        return sum(candidate.status == status and candidate.id != INITIAL for candidate in self.candidates)

    def lineage(self) -> tuple[Candidate, ...]:
        """The winner and all it was made from, latest first, down to ``all``, which every search starts with."""
        found: dict[str, Candidate] = {}
        open_ids = [self.chosen]
        while open_ids:
            id = open_ids.pop()
            if id in self.by_id and id not in found:
                found[id] = self.by_id[id]
                open_ids += found[id].parents
        found.setdefault(INITIAL, self.by_id[INITIAL])
        order = {candidate.id: place for place, candidate in enumerate(self.candidates)}
        return tuple(sorted(found.values(), key=lambda candidate: -order[candidate.id]))
