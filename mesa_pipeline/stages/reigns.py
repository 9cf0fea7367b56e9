"""Who is champion of a dataset, since when, and what each night said.

::

    champion/history.jsonl              nights and handovers, in order; only ever appended to
    champion/reigns/0001/frozen/        the policy of the first reign: a copy, which no search touches
    champion/reigns/0001/reign.json     how it came to be champion, what it was made with, what it was worth then
    champion/champion.json              who reigns now, for whoever asks

The history alone decides who reigns: a reign's folder is made whole before the event that begins it is appended, and
``champion.json`` is written again from it wherever the two differ. So a kill at any point leaves the old champion or the new.
"""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from mesa_pipeline.artifacts import Layout, fingerprint, read_json, read_json_as, write_sealed_json
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.health import Shown
from mesa_pipeline.evaluation.nights import Handover, How, Night
from mesa_pipeline.search.events import EventLog
from mesa_pipeline.search.freeze import MANIFEST_FILE

NIGHT, HANDOVER = "night", "handover"
FROZEN_FOLDER = "frozen"
REIGN_FILE = "reign.json"
CHAMPION_FILE = "champion.json"
MADE_BY = "mesa nightly"


@dataclass(frozen=True)
class Reign:
    """A policy while it is champion.

    Attributes:
        number: From 1, rising.
        since: When it began, as ISO 8601.
        how: How it began.
        name: Name of the policy.
        manifest_sha256: Hash of its manifest.
        made_on: Trajectory fingerprint of each episode that it was trained or selected on, by the episode's id.
        episodes: Trajectory and question fingerprints of every episode there was, by id.
        made_with: Settings and models that outcomes depended on, by name.
    """

    number: int
    since: str
    how: How
    name: str
    manifest_sha256: str
    made_on: Mapping[str, str]
    episodes: Mapping[str, tuple[str, str]]
    made_with: Mapping[str, str]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``dataclasses.asdict``."""
        episodes = {id: (trajectory, questions) for id, (trajectory, questions) in value["episodes"].items()}
        return cls(**{**value, "episodes": episodes})


class Throne:
    """The champion's folder of a dataset.

    Raises:
        ArtifactError: The history was changed or is damaged.
    """

    def __init__(self, layout: Layout) -> None:
        self._folder = layout.champion
        history = self._folder / "history.jsonl"
        try:
            self._log = EventLog(history)
        except ArtifactError as error:
            raise ArtifactError(
                f"{history} was changed or is damaged; put a copy back, or delete {self._folder}: a night then crowns anew"
            ) from error

    @cached_property
    def _file(self) -> Path:
        return self._folder / CHAMPION_FILE

    def reigning(self) -> int | None:
        """Number of the present reign; ``None`` where there is no champion."""
        last = self._last()
        return None if last is None else last["tenure"]

    def nights(self) -> tuple[Night, ...]:
        """Every night, oldest first."""
        return tuple(Night.from_json(event["night"]) for event in self._log if event["event"] == NIGHT)

    def handovers(self) -> tuple[Handover, ...]:
        """Every champion that a person put in place, oldest first."""
        return tuple(Handover(**event["handover"]) for event in self._log if event["event"] == HANDOVER)

    @property
    def seal(self) -> str:
        """Names the whole history."""
        last = self._last()
        return fingerprint(dict(last)) if last is not None else ""

    def last_key(self) -> str | None:
        """Key of the last night, if nothing happened since."""
        last = self._last()
        return last["night"]["key"] if last is not None and last["event"] == NIGHT else None

    def challenged(self) -> int | None:
        """Number of the reign before the last event: after a night, of the champion that the challenger was set against."""
        events = list(self._log)
        return events[-2]["tenure"] if len(events) > 1 else None

    def contested(self) -> tuple[Night, ...]:
        """The nights of the present reign in which a challenger was compared with its champion."""
        reign = self.reigning()
        return tuple(n for n in self.nights() if n.tenure == reign and n.contest.is_counted and not n.contest.is_crowned)

    def next_number(self) -> int:
        """Number of the reign that would begin now."""
        return 1 + max((event["tenure"] or 0 for event in self._log), default=0)

    def reign(self, number: int) -> Reign:
        """A reign, past or present.

        Raises:
            ArtifactError: There was none of that number, or its record is damaged.
        """
        return self._record(number).reign

    def baseline(self, number: int) -> Shown:
        """What a champion yielded on its held-out questions when its reign began; raises as ``reign``."""
        return self._record(number).baseline

    def frozen_folder(self, number: int) -> Path:
        """The policy of a reign."""
        return self._reign_folder(number) / FROZEN_FOLDER

    def begin(self, reign: Reign, frozen: Path, baseline: Shown) -> None:
        """Lay down what a reign is, with its own copy of the policy; it begins with the event that names it."""
        folder = self._reign_folder(reign.number)
        unfinished = folder.with_name(f".{folder.name}.tmp")
        try:
            for left in (unfinished, folder):
                if left.exists():
                    shutil.rmtree(left)
            shutil.copytree(frozen, unfinished / FROZEN_FOLDER)
            write_sealed_json(unfinished / REIGN_FILE, {"reign": asdict(reign), "baseline": baseline.to_json()})
            unfinished.rename(folder)
        except OSError as error:
            raise ArtifactError(f"cannot write {folder}: {error}; free space or choose another --workspace") from error

    def remember(self, event: Night | Handover) -> None:
        """Append to the history; from now on it is so."""
        kind = NIGHT if isinstance(event, Night) else HANDOVER
        self._log.append(kind, {"tenure": event.tenure, kind: asdict(event)})
        self.settle()

    def settle(self) -> None:
        """Write ``champion.json`` where it does not say who reigns."""
        number = self.reigning()
        if number is None:
            return
        reign = self.reign(number)
        said = {**asdict(reign), "frozen": str(self.frozen_folder(number).relative_to(self._folder))}
        said.pop("episodes")
        try:
            is_said = read_json(self._file, MADE_BY).get("number") == number
        except ArtifactError:
            is_said = False
        if not is_said:
            write_sealed_json(self._file, said)

    def _last(self) -> Mapping[str, Any] | None:
        events = list(self._log)
        return events[-1] if events else None

    def _reign_folder(self, number: int) -> Path:
        return self._folder / "reigns" / f"{number:04d}"

    def _record(self, number: int) -> "_Record":
        return read_json_as(_Record.from_json, self._reign_folder(number) / REIGN_FILE, MADE_BY)


@dataclass(frozen=True)
class _Record:
    """What is kept of a reign: what it is, and what its champion yielded when it began."""

    reign: Reign
    baseline: Shown

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(Reign.from_json(value["reign"]), Shown.from_json(value["baseline"]))


@dataclass(frozen=True)
class Champion:
    """The policy that reigns.

    Attributes:
        dataset: Whose champion it is.
        name: Its name.
        since: When its reign began, as ISO 8601.
        folder: Where it is frozen.
    """

    dataset: str
    name: str
    since: str
    folder: Path


def read_champion(layout: Layout) -> Champion | None:
    """The champion of a dataset; ``None`` where there is none.

    Raises:
        ArtifactError: Its record was changed, or its policy is gone.
    """
    path = layout.champion / CHAMPION_FILE
    if not path.exists():
        return None

    def reigning(said: Mapping[str, Any]) -> Champion:
        return Champion(layout.dataset, said["name"], said["since"], layout.champion / said["frozen"])

    champion = read_json_as(reigning, path, MADE_BY)
    if not (champion.folder / MANIFEST_FILE).exists():
        where = champion.folder
        raise ArtifactError(f"the champion's policy is not in {where}; put another in place with `mesa champion roll-back`")
    return champion


def latest_champion(workspace: Path) -> Champion | None:
    """Of the champions of a workspace's datasets the one crowned last, if there is any; raises as ``read_champion``."""
    layouts = [Layout(workspace, path.parent.parent.name) for path in sorted(workspace.glob(f"*/champion/{CHAMPION_FILE}"))]
    champions = [champion for layout in layouts if (champion := read_champion(layout))]
    return max(champions, key=lambda champion: champion.since, default=None)
