"""The archive of a search, folded from its events."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mesa_pipeline import __version__
from mesa_pipeline.config import SearchSettings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.search.events import Event
from mesa_pipeline.search.records import ArchiveEntry, ArmStatistics, Rejection
from mesa_pipeline.search.store import EVALUATED, REJECTED, SearchStore
from mesa_pipeline.search.ucb import arm_statistics

OBJECTIVE_DIGITS = 12
"""Objectives are compared to this many decimals: summation order must not decide between policies."""


@dataclass(frozen=True)
class Archive:
    """Every candidate judged so far.

    Attributes:
        entries: Valid ones in the order they were evaluated, the policy the archive starts with first.
        rejections: The others, in order.
    """

    entries: tuple[ArchiveEntry, ...]
    rejections: tuple[Rejection, ...]

    @property
    def frontier(self) -> ArchiveEntry:
        """The best entry so far by validation objective."""
        return best_entry(self.entries)

    @property
    def improvements(self) -> tuple[ArchiveEntry, ...]:
        """The entries that were the best so far when they came in, the first entry first."""
        found: list[ArchiveEntry] = []
        for entry in self.entries:
            if best_entry([*found[-1:], entry]) is entry:
                found.append(entry)
        return tuple(found)

    def entry(self, id: str) -> ArchiveEntry:
        """The entry of an id.

        Raises:
            KeyError: There is none.
        """
        for entry in self.entries:
            if entry.id == id:
                return entry
        raise KeyError(id)

    def best_of(self, direction: str) -> ArchiveEntry | None:
        """The best entry of an arm; ``None`` before it has one."""
        found = [entry for entry in self.entries if entry.direction == direction]
        return best_entry(found) if found else None

    def arms(self, directions: Sequence[str], settings: SearchSettings) -> tuple[ArmStatistics, ...]:
        """Statistics of every arm (paper, Eq. 9), counted as the settings say."""
        objectives: dict[str, list[float]] = {direction: [] for direction in directions}
        for entry in self.entries:
            counted = settings.count_off_direction or not entry.off_direction
            if entry.direction in objectives and counted:
                objectives[entry.direction].append(entry.validation.objective)
        repeats = [rejection for rejection in self.rejections if rejection.duplicate_of is not None]
        if settings.count_duplicates:
            for repeat in repeats:
                objectives[repeat.direction].append(self.entry(str(repeat.duplicate_of)).validation.objective)
        invalid = Counter(rejection.direction for rejection in self.rejections if rejection.duplicate_of is None)
        duplicates = Counter(repeat.direction for repeat in repeats)
        return arm_statistics(objectives, self.frontier.validation.objective, settings.ucb, invalid, duplicates)

    def backed_off(self, iteration: int, settings: SearchSettings) -> tuple[str, ...]:
        """Arms whose latest ``max_rejected`` candidates were all rejected, for ``back_off`` iterations after the last of them.

        A rejected candidate is no pull, so without this an arm that brings nothing but those would be explored for ever.
        """
        entered = [(entry.iteration, entry.id, entry.direction) for entry in self.entries if entry.direction]
        rejected = [(rejection.iteration, rejection.id, rejection.direction) for rejection in self.rejections]
        latest: dict[str, list[tuple[int, str, str]]] = {}
        for judged in sorted([*entered, *rejected]):
            latest[judged[2]] = [*latest.get(judged[2], []), judged][-settings.max_rejected :]
        return tuple(
            arm
            for arm, judged in sorted(latest.items())
            if len(judged) == settings.max_rejected
            and set(judged) <= set(rejected)
            and iteration <= judged[-1][0] + settings.back_off
        )


def best_entry(entries: Iterable[ArchiveEntry]) -> ArchiveEntry:
    """The entry of highest validation objective (Algorithm 1, line 13); ties go to fewer tokens, then to the earliest."""
    return min(entries, key=lambda entry: (-round(entry.validation.objective, OBJECTIVE_DIGITS), entry.validation.tokens))


def fold(store: SearchStore, before: int | None = None) -> Archive:
    """The archive as the events leave it.

    Args:
        store: Of the search.
        before: Only events of earlier iterations; ``None`` for all.

    Raises:
        ArtifactError: Another version wrote the events, and this one cannot read them, or a source is missing or was changed.
    """
    try:
        return _folded(store, before)
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"the events in {store.folder} were written by another mesa-pipeline; this one, {__version__}, cannot read them "
            f"({error!r}): delete the folder to search anew"
        ) from error


def _folded(store: SearchStore, before: int | None) -> Archive:
    entries: list[ArchiveEntry] = []
    rejections: list[Rejection] = []
    for event in store.events:
        if before is not None and event["iteration"] >= before:
            continue
        if event["event"] == EVALUATED:
            entries.append(_entry(event, store))
        elif event["event"] == REJECTED:
            rejections.append(_rejection(event, store))
    return Archive(tuple(entries), tuple(rejections))


def _entry(event: Event, store: SearchStore) -> ArchiveEntry:
    plain: dict[str, Any] = {name: event[name] for name in ("id", "iteration", "slot", "direction", "hypothesis", "behaviour")}
    return ArchiveEntry(
        **plain,
        parents=tuple(event["parents"]),
        source=store.source(event["source"]),
        train=Evaluation(**event["train"]),
        validation=Evaluation(**event["validation"]),
        off_direction=tuple(event["off_direction"]),
    )


def _rejection(event: Event, store: SearchStore) -> Rejection:
    plain = {name: event[name] for name in ("id", "iteration", "direction", "reason", "duplicate_of")}
    return Rejection(**plain, source=store.source(event["source"]))
