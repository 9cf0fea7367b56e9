"""Prior-guided search over executable policies (paper, Algorithm 1).

Each step asks the log first whether it was taken already, so running the same search again continues it, after a kill at any
point, to the same bytes. Candidates of one iteration are all proposed from the archive as it stood before it.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mesa_pipeline.config import SearchSettings
from mesa_pipeline.errors import PolicyError
from mesa_pipeline.evaluation.failures import FailureCard, failure_cards
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.search.archive import Archive, fold
from mesa_pipeline.search.assessment import Assessment
from mesa_pipeline.search.data import SearchData
from mesa_pipeline.search.directions import Direction
from mesa_pipeline.search.initial import initial_source
from mesa_pipeline.search.proposers import ProposalRequest, Proposer, Slot
from mesa_pipeline.search.records import ArchiveEntry, ArmStatistics
from mesa_pipeline.search.store import PROPOSED, REJECTED, SearchStore
from mesa_pipeline.search.ucb import exploited_arm, explored_arm

INITIAL = "all"


@dataclass(frozen=True)
class SearchPlan:
    """What a search is going to do.

    Attributes:
        seed: Of the split searched on.
        iterations: Iterations in all.
        slots: Candidates of each iteration.
        proposer: Name of what writes them.
        directions: Number of arms.
    """

    seed: int
    iterations: int
    slots: int
    proposer: str
    directions: int

    @property
    def candidates(self) -> int:
        return self.iterations * self.slots


@dataclass(frozen=True)
class SearchProgress:
    """How far a search is.

    Attributes:
        plan: What it is going to do.
        iteration: Iterations done.
        archive: Every candidate judged so far.
        arms: Statistics of every arm.
    """

    plan: SearchPlan
    iteration: int
    archive: Archive
    arms: tuple[ArmStatistics, ...]


def unwatched(progress: SearchProgress) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Search:
    """A search, ready to run.

    Attributes:
        data: What candidates are fitted to and compared on.
        store: The folder it continues in.
        proposer: Writes the candidates.
        directions: The arms, fixed for the run.
        sandbox: Where candidates run.
        settings: Iterations, slots, and what the paper leaves open.
        workers: Candidates of one iteration tried at the same time.
        watch: Told how far the search is after each iteration, from the calling thread; of those found in the log as well.
    """

    data: SearchData
    store: SearchStore
    proposer: Proposer
    directions: Sequence[Direction]
    sandbox: Sandbox
    settings: SearchSettings
    workers: int = 1
    watch: Callable[[SearchProgress], None] = unwatched

    def run(self) -> Archive:
        """Run what is left of the search; returns the whole archive of ``settings.iterations`` iterations.

        Raises:
            ArtifactError: The store cannot be written or was damaged.
            PolicyError: Not even the policy the archive starts with runs in the sandbox.
            MissingDependency: The proposer's model cannot be reached; run again to continue.
        """
        assessment = Assessment(self.data, self.store, self.sandbox, self.directions, self.workers)
        self._propose_initial()
        assessment.judge(0)
        self._require_initial()
        for iteration in range(1, self.settings.iterations + 1):
            archive = self._archive_after(iteration - 1)
            arms = self._arms(archive, iteration)
            for slot in self.settings.slots:
                self._propose(iteration, slot, arms[slot], archive)
            assessment.judge(iteration)
        return self._archive_after(self.settings.iterations)

    def _archive_after(self, iteration: int) -> Archive:
        archive = fold(self.store, before=iteration + 1)
        self.watch(SearchProgress(self._plan, iteration, archive, archive.arms(self._names, self.settings)))
        return archive

    @property
    def _plan(self) -> SearchPlan:
        settings = self.settings
        arms = len(self.directions)
        return SearchPlan(self.data.context.seed, settings.iterations, len(settings.slots), self.proposer.name, arms)

    @property
    def _names(self) -> list[str]:
        return [direction.id for direction in self.directions]

    def _propose_initial(self) -> None:
        if self.store.find(PROPOSED, INITIAL):
            return
        source = self.store.put_source(initial_source(self.data.context.max_structures))
        placed = {"id": INITIAL, "iteration": 0, "slot": None, "direction": None}
        self.store.events.append(PROPOSED, {**placed, "source": source, "spent": {}})

    def _require_initial(self) -> None:
        if rejected := self.store.find(REJECTED, INITIAL):
            raise PolicyError(
                f"the policy that every search starts with does not run here: {rejected['reason']}; see `mesa doctor`, "
                f"delete {self.store.folder} and run again"
            )

    def _arms(self, archive: Archive, iteration: int) -> dict[Slot, str]:
        """The arm each slot follows; see ``search.ucb`` for what the paper leaves open."""
        arms = archive.arms(self._names, self.settings)
        exploited = exploited_arm(arms)
        parent = archive.frontier.direction
        explored = explored_arm(arms, exploited, archive.backed_off(iteration, self.settings))
        return {"exploit": exploited, "explore": explored, "repair": parent if parent in self._names else explored}

    def _propose(self, iteration: int, slot: Slot, arm: str, archive: Archive) -> None:
        candidate = f"{iteration:02d}-{slot}"
        if self.store.find(PROPOSED, candidate):
            return
        proposal = self.proposer.propose(self._request(iteration, slot, arm, archive))
        if proposal.exchange:
            self.store.put_exchange(candidate, proposal.exchange)
        source = self.store.put_source(proposal.source)
        placed = {"id": candidate, "iteration": iteration, "slot": slot, "direction": arm}
        failure = {"failure": proposal.failure} if proposal.failure is not None else {}
        self.store.events.append(PROPOSED, {**placed, **failure, "source": source, "spent": dict(proposal.spent)})

    def _request(self, iteration: int, slot: Slot, arm: str, archive: Archive) -> ProposalRequest:
        frontier = archive.frontier
        parents = {"exploit": archive.best_of(arm), "explore": None, "repair": frontier}
        return ProposalRequest(
            iteration=iteration,
            slot=slot,
            direction=next(direction for direction in self.directions if direction.id == arm),
            parent=parents[slot],
            archive=archive.entries,
            rejections=archive.rejections,
            arms=archive.arms(self._names, self.settings),
            cards=self._cards(frontier) if slot == "repair" else (),
            train=self.data.train,
            context=self.data.context,
            seed=derived_seed(self.data.context.seed, iteration, slot, "propose"),
        )

    def _cards(self, frontier: ArchiveEntry) -> tuple[FailureCard, ...]:
        chosen = self.store.choices(frontier.behaviour)
        on_train = self.settings.feedback_split == "train"
        return failure_cards(
            self.data.train if on_train else self.data.validation,
            chosen.train if on_train else chosen.validation,
            self.data.context.lambda_,
            self.settings.failure_cards,
            self.data.context.labels,
        )


def derived_seed(seed: int, *purpose: object) -> int:
    """A seed of its own for each draw: nothing depends on how many draws came before, so a search can be continued anywhere."""
    digest = hashlib.sha256(repr((seed, *purpose)).encode()).digest()
    return int.from_bytes(digest[:8], "big")
