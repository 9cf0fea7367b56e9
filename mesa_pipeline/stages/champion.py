"""The nightly re-evaluation: a challenger is searched for, the champion is looked at again, and the better one reigns.

Both stages are continued by running them again, and do nothing when nothing changed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Self

from mesa_pipeline.artifacts import exclusive, fingerprint
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.contest import Contest, contest, first_contest
from mesa_pipeline.evaluation.health import Shown, health_of
from mesa_pipeline.evaluation.held_out import outcomes_sha256
from mesa_pipeline.evaluation.nights import Changes, Handover, How, Night
from mesa_pipeline.stages.circumstances import changes, circumstances, fingerprints
from mesa_pipeline.stages.contenders import Contender, episodes_of
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.night_page import PAGE, write_night_page
from mesa_pipeline.stages.optimize import FROZEN_FOLDER, optimize
from mesa_pipeline.stages.reigns import Reign, Throne
from mesa_pipeline.stages.search_tracking import tracked_policy, tracked_search
from mesa_pipeline.stages.split import grow_split
from mesa_pipeline.stages.storage import Manifest, read_manifest
from mesa_pipeline.stages.table import Table, read_table
from mesa_pipeline.tracking import CHAMPION, Tracker
from mesa_pipeline.types import Summary

NIGHT_VERSION = 1
"""Raised when a night decides something else on the same policies and outcomes."""
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time, as the history notes it."""
    return datetime.now(UTC)


def challenge(context: StageContext, tracker: Tracker) -> Summary:
    """Bring the growing split up to date and search on it, as ``optimize`` does for any split seed.

    Raises:
        DataError: There are too few episodes with questions.
        ArtifactError: Some outcomes are missing; says which command makes them.
        PolicyError: Code of a language model would run in a weak sandbox.
    """
    nightly, seed = _nightly(context), context.settings.nightly.seed
    grown = grow_split(nightly, seed)
    searched = optimize(nightly, seed, tracker)
    return replace(searched, stage="challenger").with_part(grown)


def challenger_folder(context: StageContext) -> Path:
    """Where the challenger is frozen."""
    return _nightly(context).layout.policy(context.settings.nightly.seed) / FROZEN_FOLDER


def re_evaluate(context: StageContext, tracker: Tracker, now: Clock = utc_now) -> Summary:
    """Re-evaluate the champion on its held-out episodes, compare the challenger with it, and crown whom the rule says.

    Raises:
        ArtifactError: No challenger is frozen, or some outcomes are missing; says which command makes them.
        PolicyError: A policy broke its contract, or is a language model's code and the sandbox here is weak.
        MissingDependency: The tracker cannot be reached; the night is kept, and told to it by the next call.
    """
    started = time.perf_counter()
    with exclusive(context.layout):
        throne = Throne(context.layout)
        tonight = _Tonight.of(context, throne)
        kept = throne.last_key() == tonight.key
        if not kept:
            tonight.hold(throne, _stamp(now))
        throne.settle()
        write_night_page(context.layout)
    _tell(context, throne, tracker)
    last = throne.nights()[-1]
    facts: dict[str, object] = {
        "decision": last.contest.decision,
        "comparisons": last.contest.number,
        "held_out_episodes": last.contest.episodes,
        "champion_worse": ", ".join(last.worse) or "no",
        "verdict": last.verdict,
        "page": str(context.layout.champion / PAGE),
    }
    return Summary("champion", int(not kept), int(kept), time.perf_counter() - started, facts=facts)


def promote(context: StageContext, folder: Path, tracker: Tracker, reason: str = "", now: Clock = utc_now) -> Reign:
    """Put a frozen policy in the champion's place, whatever it is worth; nothing happens where it reigns already.

    Raises:
        ArtifactError: It is no frozen policy, or some outcomes of episodes it was not made with are missing.
        PolicyError: It is a language model's code, and the sandbox here is weak.
    """
    reign = _hand_over(context, folder, "by hand", reason, now)
    _tell(context, Throne(context.layout), tracker)
    return reign


def roll_back(
    context: StageContext, tracker: Tracker, number: int | None = None, reason: str = "", now: Clock = utc_now
) -> Reign:
    """Put the policy of an earlier reign back in the champion's place, by default that of the last one with another policy.

    Raises:
        ArtifactError: There is no such reign.
    """
    throne = Throne(context.layout)
    present = throne.reigning()
    if present is None:
        raise ArtifactError(f"{context.dataset!r} has no champion yet; `mesa nightly` finds one")
    former = _former(throne, present) if number is None else throne.reign(number).number
    reign = _hand_over(context, throne.frozen_folder(former), "rolled back", reason or f"back to reign {former}", now)
    _tell(context, Throne(context.layout), tracker)
    return reign


def _tell(context: StageContext, throne: Throne, tracker: Tracker) -> None:
    """Let the tracker's champion be the one that reigns."""
    number = throne.reigning()
    if number is None:
        return
    folder = throne.frozen_folder(number)
    frozen = Contender.open(context, folder, {}).frozen
    made = frozen.provenance
    search = tracked_search(context, made.split_seed, made.search, made.proposer)
    tracker.promote(search, tracked_policy(folder, frozen), CHAMPION)


def _former(throne: Throne, present: int) -> int:
    policy = throne.reign(present).manifest_sha256
    for number in range(present - 1, 0, -1):
        if throne.reign(number).manifest_sha256 != policy:
            return number
    raise ArtifactError(
        "there is no earlier champion to go back to; `mesa champion promote` puts any frozen policy in its place"
    )


def _hand_over(context: StageContext, folder: Path, how: How, reason: str, now: Clock) -> Reign:
    with exclusive(context.layout):
        throne, manifest = Throne(context.layout), read_manifest(context.layout)
        known = Contender.open(context, folder, {})
        present = throne.reigning()
        if present is not None and throne.reign(present).manifest_sha256 == known.frozen.manifest_sha256:
            return throne.reign(present)
        contender = replace(known, made_on=episodes_of(known.frozen, manifest))
        table = _read_unseen(context, manifest, [contender])
        shown = contender.shown(table.matrix, contender.unseen(manifest.episodes), context.settings.search.labels)
        reign = _reign(context, throne.next_number(), contender, how, _stamp(now))
        throne.begin(reign, folder, shown)
        throne.remember(Handover(reign.since, reign.number, how, reign.name, reason))
        return reign


@dataclass(frozen=True)
class _Tonight:
    """What a night is decided on."""

    context: StageContext
    manifest: Manifest
    table: Table
    challenger: Contender
    champion: Contender | None
    reign: Reign | None

    @classmethod
    def of(cls, context: StageContext, throne: Throne) -> Self:
        manifest, number = read_manifest(context.layout), throne.reigning()
        known = Contender.open(context, challenger_folder(context), {})
        challenger = replace(known, made_on=episodes_of(known.frozen, manifest))
        reign = None if number is None else throne.reign(number)
        champion = Contender.open(context, throne.frozen_folder(reign.number), reign.made_on) if reign else None
        table = _read_unseen(context, manifest, [challenger, *([champion] if champion else [])])
        return cls(context, manifest, table, challenger, champion, reign)

    @cached_property
    def key(self) -> str:
        """Fingerprint of all that decides, but for who reigns: crowning the challenger changes that and nothing else."""
        settings = self.context.settings
        rule = [
            settings.nightly.confidence,
            settings.nightly.min_episodes,
            settings.nightly.growth,
            settings.search.lambda_,
            settings.search.labels,
        ]
        challenger = self.challenger.frozen.manifest_sha256
        episodes = fingerprints(self.manifest.episodes)
        return fingerprint("night", NIGHT_VERSION, challenger, outcomes_sha256(self.table.matrix), episodes, rule)

    def hold(self, throne: Throne, at: str) -> None:
        """Decide, crown, and remember."""
        shown = self._shown(self.challenger)
        if self.champion is None or self.reign is None:
            night = self._first_night(shown, at)
        else:
            night = self._later_night(throne, self.champion, self.reign, shown, at)
        if night.contest.is_crowned:
            how: How = "first" if self.reign is None else "promoted"
            reign = _reign(self.context, throne.next_number(), self.challenger, how, at)
            throne.begin(reign, self.challenger.folder, shown)
            night = replace(night, tenure=reign.number)
        throne.remember(night)

    def _first_night(self, shown: Shown, at: str) -> Night:
        settings = self.context.settings
        found = first_contest(shown.policy, shown.everything, settings.search.lambda_, settings.nightly)
        standing = self.challenger.standing(shown, self.context)
        return Night(at, self.key, None, None, standing, found, None, Changes())

    def _later_night(self, throne: Throne, champion: Contender, reign: Reign, challenger: Shown, at: str) -> Night:
        settings, shown = self.context.settings, self._shown(champion)
        now = fingerprints(self.manifest.episodes)
        unchanged = frozenset(id for id, marks in now.items() if reign.episodes.get(id) == marks)
        return Night(
            at=at,
            key=self.key,
            tenure=reign.number,
            champion=champion.standing(shown, self.context),
            challenger=self.challenger.standing(challenger, self.context),
            contest=self._contest(throne, challenger, shown),
            health=health_of(shown, throne.baseline(reign.number), unchanged, settings.search.lambda_, settings.nightly),
            changes=changes(reign.episodes, now, reign.made_with, circumstances(self.context)),
        )

    def _contest(self, throne: Throne, challenger: Shown, champion: Shown) -> Contest:
        """On the episodes that are held out from both."""
        neither = frozenset(challenger.policy.episodes) & frozenset(champion.policy.episodes)
        sides = challenger.policy.of_episodes(neither), champion.policy.of_episodes(neither)
        settings, earlier = self.context.settings, [night.contest for night in throne.contested()]
        searched_with = [settings.search.model_dump(), settings.policies.model_dump()]
        setting = fingerprint("setting", circumstances(self.context), searched_with)
        return contest(*sides, settings.search.lambda_, setting, earlier, settings.nightly)

    def _shown(self, contender: Contender) -> Shown:
        return contender.shown(self.table.matrix, contender.unseen(self.manifest.episodes), self.context.settings.search.labels)


def _read_unseen(context: StageContext, manifest: Manifest, contenders: list[Contender]) -> Table:
    """Outcomes of the episodes that some contender was not made with."""
    asked = [entry for entry in manifest.episodes if entry.question_count]
    return read_table(context, frozenset().union(*(contender.unseen(asked) for contender in contenders)))


def _reign(context: StageContext, number: int, contender: Contender, how: How, at: str) -> Reign:
    manifest = read_manifest(context.layout)
    return Reign(
        number=number,
        since=at,
        how=how,
        name=contender.frozen.name,
        manifest_sha256=contender.frozen.manifest_sha256,
        made_on=contender.made_on,
        episodes=fingerprints(manifest.episodes),
        made_with=circumstances(context),
    )


def _nightly(context: StageContext) -> StageContext:
    """Where challengers are split and searched for, apart from the policies of the report."""
    return replace(context, layout=replace(context.layout, nightly=True))


def _stamp(now: Clock) -> str:
    return now().isoformat(timespec="seconds")
