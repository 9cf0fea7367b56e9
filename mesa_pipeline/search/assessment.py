"""What becomes of proposed candidates: tried at the same time, recorded one after the other.

An entry of the archive is what chooses unlike every entry before it. Code that does the same as an earlier one is recognised
before anything runs, choices that are the same afterwards.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.search.conformance import unused_signals
from mesa_pipeline.search.data import SearchData
from mesa_pipeline.search.directions import Direction
from mesa_pipeline.search.events import Event
from mesa_pipeline.search.store import EVALUATED, PROPOSED, REJECTED, SearchStore
from mesa_pipeline.search.trial import Invalid, Trial, gated, tried

REASON_CHARS = 600


@dataclass(frozen=True)
class Repeated:
    """A candidate that does what an entry of the archive does."""

    entry: str


@dataclass(frozen=True)
class Assessment:
    """Judges the candidates of a search.

    Attributes:
        data: What candidates are fitted to and compared on.
        store: Where proposals are read and verdicts are recorded.
        sandbox: Where candidates run.
        directions: The arms.
        workers: Candidates tried at the same time.
    """

    data: SearchData
    store: SearchStore
    sandbox: Sandbox
    directions: Sequence[Direction]
    workers: int

    def judge(self, iteration: int) -> None:
        """Judge the proposals of an iteration that have no verdict yet.

        Raises:
            ArtifactError: The store cannot be written or was damaged.
            MissingDependency: Workers do not start on this system.
        """
        proposals = [event for event in self.store.of(PROPOSED) if event["iteration"] == iteration]
        waiting = [event for event in proposals if not self._is_judged(event["id"])]
        with ThreadPoolExecutor(max(1, self.workers)) as pool:
            verdicts = [pool.submit(self._verdict, event) for event in waiting]
            for event, verdict in zip(waiting, verdicts, strict=True):
                self._record(event, verdict.result())

    def _is_judged(self, candidate: str) -> bool:
        return any(self.store.find(kind, candidate) for kind in (EVALUATED, REJECTED))

    def _verdict(self, proposed: Event) -> Trial | Invalid | Repeated:
        if proposed.get("failure") is not None:
            return Invalid(f"no source: {proposed['failure']}")
        code = gated(self.store.source(proposed["source"]), self.data)
        if isinstance(code, Invalid):
            return code
        for earlier in self._entries_before(proposed["iteration"]):
            if earlier["code"] == code.sha256:
                return Repeated(earlier["id"])
        return tried(code, proposed["id"], self.data, self.sandbox)

    def _entries_before(self, iteration: int) -> list[Event]:
        """Of earlier iterations alone: what is tried at the same time must not depend on what is done first."""
        return [event for event in self.store.of(EVALUATED) if event["iteration"] < iteration]

    def _record(self, proposed: Event, verdict: Trial | Invalid | Repeated) -> None:
        placed = {name: proposed[name] for name in ("id", "iteration", "slot", "direction", "source")}
        if isinstance(verdict, Trial):
            behaviour = self.store.put_choices(verdict.choices)
            twins = [event["id"] for event in self.store.of(EVALUATED) if event["behaviour"] == behaviour]
            if not twins:
                self.store.events.append(EVALUATED, {**placed, **self._evaluated(proposed, verdict, behaviour)})
                return
            verdict = Repeated(twins[0])
        self.store.events.append(REJECTED, {**placed, **_why(verdict)})

    def _evaluated(self, proposed: Event, trial: Trial, behaviour: str) -> dict[str, Any]:
        known = {event["id"] for event in self._entries_before(proposed["iteration"])}
        inputs = next((arm.inputs for arm in self.directions if arm.id == proposed["direction"]), ())
        return {
            "code": trial.code.sha256,
            "parents": [parent for parent in trial.code.meta["parents"] if parent in known],
            "hypothesis": printable(trial.code.meta["hypothesis"]),
            "state": self.store.put_state(trial.state),
            "behaviour": behaviour,
            "train": asdict(trial.worth.train),
            "validation": asdict(trial.worth.validation),
            "off_direction": list(unused_signals(trial.code.source, inputs)),
        }


def _why(verdict: Invalid | Repeated) -> dict[str, str | None]:
    if isinstance(verdict, Repeated):
        return {"reason": f"chooses exactly as {verdict.entry}", "duplicate_of": verdict.entry}
    return {"reason": printable(verdict.reason), "duplicate_of": None}


def printable(text: str) -> str:
    """Text that a policy may have written, as one short line without control characters."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "\ufffd" for c in line)[:REASON_CHARS]
