"""What the report says of searches and ablations, gathered from their artifacts."""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace

from mesa_pipeline.errors import ArtifactError, ConfigError
from mesa_pipeline.reports.search_findings import Arm, Candidate, Reading, SearchFinding, Worth
from mesa_pipeline.search.archive import Archive
from mesa_pipeline.search.pareto import best_at, hypervolume, pareto_front
from mesa_pipeline.search.records import ArchiveEntry, Rejection
from mesa_pipeline.search.ucb import bonus_to_spread
from mesa_pipeline.stages.ablate import ablated
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.optimize import read_archive, read_frozen, read_result
from mesa_pipeline.stages.test import is_tested

PRICE_MULTIPLES = (0.0, 0.1, 1.0, 10.0, 100.0)
"""Prices of a token that the archive is read off at, as multiples of the one searched with."""
MAX_STATE_CHARS = 20_000
logger = logging.getLogger(__name__)


def search_findings(context: StageContext) -> tuple[SearchFinding, ...]:
    """The finished search of every split seed that has one."""
    found: list[SearchFinding] = []
    for seed in context.settings.splits.seeds:
        try:
            found.append(search_finding(context, seed))
        except ArtifactError as error:
            logger.info("the search of seed %d is left out of the report: %s", seed, error)
    return tuple(found)


def ablation_contexts(context: StageContext) -> dict[str, StageContext]:
    """The context of every ablation that has been tested as the settings now have it, with the seeds it was tested on."""
    found: dict[str, StageContext] = {}
    for ablation in context.settings.ablations:
        try:
            changed = ablated(context, ablation)
        except ConfigError as error:
            logger.warning("%s", error)
            continue
        seeds = tuple(seed for seed in context.settings.splits.seeds if is_tested(changed, seed))
        if seeds:
            splits = changed.settings.splits.model_copy(update={"seeds": seeds})
            found[ablation.name] = replace(changed, settings=changed.settings.model_copy(update={"splits": splits}))
    return found


def search_finding(context: StageContext, seed: int) -> SearchFinding:
    """The finished search of a split seed.

    Raises:
        ArtifactError: There has been none, or its policy is not frozen.
    """
    result, archive, frozen = read_result(context, seed), read_archive(context, seed), read_frozen(context, seed)
    settings = context.settings.search
    arms = archive.arms(result.directions, settings)
    initial = archive.entries[0]
    return SearchFinding(
        seed=seed,
        proposer=result.proposer,
        rule=result.rule,
        planned=result.planned,
        lambda_=settings.lambda_,
        candidates=_candidates(archive),
        arms=tuple(Arm(arm.direction, arm.pulls, arm.value, arm.bonus, arm.invalid, arm.duplicates) for arm in arms),
        chosen=result.chosen,
        manifest_sha256=frozen.manifest_sha256,
        source=archive.entry(result.chosen).source,
        state=_readable(frozen.fitted.state),
        readings=_readings(archive.entries, settings.lambda_),
        hypervolume=hypervolume(archive.entries, initial.validation.tokens),
        bonus_to_spread=bonus_to_spread(arms),
        improvements=tuple(entry.id for entry in archive.improvements),
    )


def _candidates(archive: Archive) -> tuple[Candidate, ...]:
    """Entries and rejections in the order in which they were tried."""
    front = {entry.id for entry in pareto_front(archive.entries)}
    entries = [_of_entry(entry, entry.id in front) for entry in archive.entries]
    rejections = [_of_rejection(rejection, archive) for rejection in archive.rejections]
    return tuple(sorted([*entries, *rejections], key=lambda candidate: (candidate.iteration, candidate.id)))


def _of_entry(entry: ArchiveEntry, on_front: bool) -> Candidate:
    return Candidate(
        id=entry.id,
        iteration=entry.iteration,
        slot=entry.slot,
        direction=entry.direction,
        status="evaluated",
        worth=_worth(entry),
        parents=entry.parents,
        hypothesis=entry.hypothesis,
        on_front=on_front,
    )


def _of_rejection(rejection: Rejection, archive: Archive) -> Candidate:
    twin = rejection.duplicate_of
    return Candidate(
        id=rejection.id,
        iteration=rejection.iteration,
        slot=rejection.id.partition("-")[2],
        direction=rejection.direction,
        status="invalid" if twin is None else "duplicate",
        worth=None if twin is None else _worth(archive.entry(twin)),
        reason=rejection.reason,
    )


def _worth(entry: ArchiveEntry) -> Worth:
    worth = entry.validation
    return Worth(worth.score, worth.tokens, worth.structures, worth.objective, entry.train.objective)


def _readings(entries: Sequence[ArchiveEntry], lambda_: float) -> tuple[Reading, ...]:
    return tuple(Reading(times * lambda_, best_at(entries, times * lambda_).id) for times in PRICE_MULTIPLES)


def _readable(state: object) -> str:
    text = json.dumps(state, indent=1, sort_keys=True)
    return text if len(text) <= MAX_STATE_CHARS else text[:MAX_STATE_CHARS] + "\n…"
