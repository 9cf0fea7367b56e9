"""Prior-guided search over executable policies (paper, Algorithm 1).

Each step asks the log first whether it was taken already, so running the same search again continues it, after a kill at any
point, to the same bytes. Candidates of one iteration are all proposed from the archive as it stood before it.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from mesa_pipeline.config import SearchSettings
from mesa_pipeline.evaluation.failures import failure_cards
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.policies.sandbox.gate import PolicyCode
from mesa_pipeline.search.archive import EVALUATED, PROPOSED, REJECTED, Archive, fold
from mesa_pipeline.search.conformance import unused_signals
from mesa_pipeline.search.data import SearchData
from mesa_pipeline.search.directions import Direction
from mesa_pipeline.search.events import Event
from mesa_pipeline.search.initial import initial_source
from mesa_pipeline.search.proposers import ProposalRequest, Proposer, Slot
from mesa_pipeline.search.records import ArchiveEntry, ArmStatistics
from mesa_pipeline.search.store import SearchStore
from mesa_pipeline.search.trial import Invalid, Repeated, Trial, gated, tried
from mesa_pipeline.search.ucb import exploited_arm, explored_arm

INITIAL = "all"
REASON_CHARS = 600
logger = logging.getLogger(__name__)


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
            MissingDependency: The proposer's model cannot be reached; run again to continue.
        """
        self._start()
        for iteration in range(1, self.settings.iterations + 1):
            archive = self._archive_after(iteration - 1)
            arms = self._arms(archive, iteration)
            for slot in self.settings.slots:
                self._propose(iteration, slot, arms[slot], archive)
            self._judge(iteration)
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

    def _start(self) -> None:
        if not self._found(INITIAL, PROPOSED):
            source = self.store.put_source(initial_source(self.data.context.max_structures))
            self.store.events.append(
                PROPOSED,
                {"id": INITIAL, "iteration": 0, "slot": None, "direction": None, "source": source, "spent": {}},
            )
        self._judge(0)

    def _arms(self, archive: Archive, iteration: int) -> dict[Slot, str]:
        """The arm each slot follows; see ``search.ucb`` for what the paper leaves open."""
        arms = archive.arms(self._names, self.settings)
        exploited = exploited_arm(arms)
        parent = archive.frontier.direction
        avoid = [exploited, *archive.backed_off(iteration, self.settings)]
        explored = explored_arm(arms, avoid)
        return {"exploit": exploited, "explore": explored, "repair": parent if parent in self._names else explored}

    def _propose(self, iteration: int, slot: Slot, arm: str, archive: Archive) -> None:
        candidate = f"{iteration:02d}-{slot}"
        if self._found(candidate, PROPOSED):
            return
        proposal = self.proposer.propose(self._request(iteration, slot, arm, archive))
        if proposal.exchange:
            self.store.put_exchange(candidate, proposal.exchange)
        data = {"id": candidate, "iteration": iteration, "slot": slot, "direction": arm, "spent": dict(proposal.spent)}
        self.store.events.append(PROPOSED, {**data, "source": self.store.put_source(proposal.source)})

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

    def _cards(self, frontier: ArchiveEntry) -> Any:
        chosen = self.store.choices(frontier.behaviour)
        on_train = self.settings.feedback_split == "train"
        return failure_cards(
            self.data.train if on_train else self.data.validation,
            chosen.train if on_train else chosen.validation,
            self.data.context.lambda_,
            self.settings.failure_cards,
            self.data.context.labels,
        )

    def _judge(self, iteration: int) -> None:
        """Try the iteration's candidates at the same time; record what became of them one after the other."""
        open_events = [
            event
            for event in self.store.events
            if event["event"] == PROPOSED and event["iteration"] == iteration and not self._is_judged(event["id"])
        ]
        with ThreadPoolExecutor(max(1, self.workers)) as pool:
            tries = [pool.submit(self._try, event) for event in open_events]
            for event, outcome in zip(open_events, tries, strict=True):
                self._record(event, outcome.result())

    def _try(self, event: Event) -> Trial | Invalid | Repeated:
        source = self.store.source(event["source"])
        code = gated(source, self.data)
        if isinstance(code, Invalid):
            return code
        repeated = self._same_code(code, before=event["iteration"])
        return repeated or tried(code, event["id"], self.data, self.sandbox)

    def _same_code(self, code: PolicyCode, before: int) -> Repeated | None:
        """The entry whose code does the same, recognised before anything runs."""
        for event in self.store.events:
            if event["event"] == EVALUATED and event["iteration"] < before and event["code"] == code.sha256:
                return Repeated(event["id"])
        return None

    def _record(self, proposed: Event, outcome: Trial | Invalid | Repeated) -> None:
        shared = {name: proposed[name] for name in ("id", "iteration", "slot", "direction", "source")}
        if isinstance(outcome, Invalid):
            reason = printable(outcome.reason)
            self.store.events.append(REJECTED, {**shared, "reason": reason, "duplicate_of": None})
            return
        if isinstance(outcome, Trial):
            behaviour = self.store.put_choices(outcome.choices)
            twin = next((e["id"] for e in self.store.events if e["event"] == EVALUATED and e["behaviour"] == behaviour), None)
            if twin is None:
                self.store.events.append(EVALUATED, {**shared, **self._evaluated(proposed, outcome, behaviour)})
                return
            outcome = Repeated(twin)
        reason = f"chooses exactly as {outcome.entry}"
        self.store.events.append(REJECTED, {**shared, "reason": reason, "duplicate_of": outcome.entry})

    def _evaluated(self, proposed: Event, trial: Trial, behaviour: str) -> dict[str, Any]:
        worth = self.data.evaluations(proposed["id"], trial.choices)
        direction = next((d for d in self.directions if d.id == proposed["direction"]), None)
        return {
            "code": trial.code.sha256,
            "parents": list(trial.code.meta["parents"]),
            "hypothesis": printable(trial.code.meta["hypothesis"]),
            "state": self.store.put_state(trial.state),
            "behaviour": behaviour,
            "train": asdict(worth.train),
            "validation": asdict(worth.validation),
            "off_direction": list(unused_signals(trial.code.source, direction.inputs)) if direction else [],
        }

    def _is_judged(self, candidate: str) -> bool:
        return self._found(candidate, EVALUATED) or self._found(candidate, REJECTED)

    def _found(self, candidate: str, kind: str) -> bool:
        return any(event["id"] == candidate and event["event"] == kind for event in self.store.events)


def derived_seed(seed: int, *purpose: object) -> int:
    """A seed of its own for each draw: nothing depends on how many draws came before, so a search can be continued anywhere."""
    digest = hashlib.sha256(repr((seed, *purpose)).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def printable(text: str) -> str:
    """Text that a policy may have written, as one short line without control characters."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "\ufffd" for c in line)[:REASON_CHARS]
