"""The nightly re-evaluation: a challenger is searched for, the champion is looked at again, and the better one reigns.

Both stages are continued by running them again, and do nothing when nothing changed.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from mesa_pipeline.artifacts import exclusive
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.nights import Handover, How
from mesa_pipeline.stages.contenders import Contender, episodes_of
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.night_page import PAGE, write_night_page
from mesa_pipeline.stages.optimize import optimize
from mesa_pipeline.stages.reigns import Reign, Throne
from mesa_pipeline.stages.search_tracking import tracked_policy, tracked_search
from mesa_pipeline.stages.split import grow_split
from mesa_pipeline.stages.storage import read_manifest
from mesa_pipeline.stages.tonight import Tonight, nightly_of, read_unseen, reign_of
from mesa_pipeline.tracking import CHAMPION, Tracker
from mesa_pipeline.types import Summary

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
    nightly, seed = nightly_of(context), context.settings.nightly.seed
    grown = grow_split(nightly, seed)
    searched = optimize(nightly, seed, tracker)
    return replace(searched, stage="challenger").with_part(grown)


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
        tonight = Tonight.of(context, throne)
        kept = throne.last_key() == tonight.key
        if not kept:
            tonight.hold(throne, _stamp(now))
        throne.settle()
        write_night_page(context.layout)
    _tell(context, throne, tracker)
    _tell_night(tonight, throne, tracker)
    last = throne.nights()[-1]
    facts: dict[str, object] = {
        "decision": last.contest.decision,
        "comparisons": last.contest.number,
        "held_out_episodes": last.contest.episodes,
        "champion_worse": ", ".join(last.worse) or "no",
        "verdict": f"Nothing changed since the night of {last.at}, which said: {last.verdict}" if kept else last.verdict,
        "page": str(context.layout.champion / PAGE),
    }
    return Summary("champion", int(not kept), int(kept), time.perf_counter() - started, facts=facts)


def tell_night(context: StageContext, tracker: Tracker) -> bool:
    """Let the tracker show the two policies of the last night side by side; whether any of that was new.

    Nothing is told where what that night was decided on is no longer what there is.

    Raises:
        ArtifactError, PolicyError: As ``re_evaluate``.
        MissingDependency: The tracker cannot be reached.
    """
    throne = Throne(context.layout)
    if throne.last_key() is None:
        return False
    tonight = Tonight.of(context, throne)
    return tonight.key == throne.last_key() and _tell_night(tonight, throne, tracker)


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


def _tell_night(tonight: Tonight, throne: Throne, tracker: Tracker) -> bool:
    made = tonight.challenger.frozen.provenance
    search = tracked_search(nightly_of(tonight.context), made.split_seed, made.search, made.proposer)
    return tracker.test(search, tonight.told(throne))


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
        table = read_unseen(context, manifest, [contender])
        shown = contender.shown(table.matrix, contender.unseen(manifest.episodes), context.settings.search.labels)
        reign = reign_of(context, throne.next_number(), contender, how, _stamp(now))
        throne.begin(reign, folder, shown)
        throne.remember(Handover(reign.since, reign.number, how, reign.name, reason))
        return reign


def _stamp(now: Clock) -> str:
    return now().isoformat(timespec="seconds")
