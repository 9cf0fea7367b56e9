"""Optimize: choose a policy on training and validation outcomes, and freeze it. The test episodes' outcomes stay unopened."""

import json
import time
from dataclasses import asdict

from mesa_pipeline import __version__
from mesa_pipeline.artifacts import exclusive, fingerprint, read_json, write_sealed_json
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.search.freeze import FrozenPolicy, Provenance, freeze, load_frozen
from mesa_pipeline.search.selection import Candidate, Selection, select_policy
from mesa_pipeline.stages.context import StageContext, open_reading
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.table import Table, read_table
from mesa_pipeline.tracking import SearchRun, TrackedCandidate, TrackedSearch, Tracker
from mesa_pipeline.types import Summary

CANDIDATES_FILE = "candidates.json"
FROZEN_FOLDER = "frozen"


def optimize(context: StageContext, seed: int, tracker: Tracker) -> Summary:
    """Fit every candidate on train, choose by J - lambda C on validation (paper, Eq. 8), freeze the choice.

    Raises:
        ArtifactError: The split or some outcomes are missing; says which command makes them.
    """
    started = time.perf_counter()
    split = read_split(context, seed)
    train, validation = read_table(context, split.train), read_table(context, split.val)
    key = _search_fingerprint(context, seed, train, validation)
    kept = _current(context, seed, key)
    if not kept:
        with exclusive(context.layout):
            _search(context, seed, key, train, validation, tracker)
    frozen = read_frozen(context, seed)
    facts: dict[str, object] = {
        "chosen": frozen.name,
        "validation_score": round(100 * frozen.validation.score, 2),
        "validation_tokens": round(frozen.validation.tokens),
    }
    if unswept := len(train.unswept) + len(validation.unswept):
        facts["questions_without_outcome"] = unswept
    return Summary(f"optimize seed {seed}", int(not kept), int(kept), time.perf_counter() - started, facts=facts)


def read_frozen(context: StageContext, seed: int) -> FrozenPolicy:
    """The frozen policy of a seed.

    Raises:
        ArtifactError: There is none, or it was tampered with.
    """
    return load_frozen(context.layout.policy(seed) / FROZEN_FOLDER)


def read_candidates(context: StageContext, seed: int) -> tuple[Evaluation, ...]:
    """What each candidate of a seed's search is worth on validation.

    Raises:
        ArtifactError: There has been no search.
    """
    stored = read_json(context.layout.policy(seed) / CANDIDATES_FILE, f"mesa optimize --seed {seed}")
    return tuple(Evaluation(**candidate["validation"]) for candidate in stored["candidates"])


def tracked_search(context: StageContext, seed: int, key: str) -> TrackedSearch:
    """The search as the tracker knows it."""
    reading = open_reading(context.settings, context.dataset)
    params = {
        "lambda": context.settings.search.lambda_,
        "shrinkage": context.settings.policies.shrinkage,
        "reader": reading.reader.name,
        "reward": reading.reward.name,
        "embedder": context.settings.llm.embedder,
        "tokenizer": reading.counter.name,
        "package_version": __version__,
    }
    return TrackedSearch(context.dataset, seed, key, params)


def search_key(context: StageContext, seed: int) -> str:
    """Key of the search whose policy is frozen.

    Raises:
        ArtifactError: There is none.
    """
    stored = read_json(context.layout.policy(seed) / CANDIDATES_FILE, f"mesa optimize --seed {seed}")
    return str(stored["fingerprint"])


def _search(context: StageContext, seed: int, key: str, train: Table, validation: Table, tracker: Tracker) -> None:
    folder = context.layout.policy(seed)
    (folder / CANDIDATES_FILE).unlink(missing_ok=True)
    with tracker.search(tracked_search(context, seed, key)) as run:
        selection = select_policy(
            train.matrix,
            validation.matrix,
            context.settings,
            seed,
            on_candidate=lambda candidate: _track(run, candidate),
        )
        provenance = _provenance(context, seed, {**train.fingerprints, **validation.fingerprints})
        chosen = selection.chosen
        freeze(folder / FROZEN_FOLDER, chosen.fitted, provenance, chosen.validation)
        is_first_seed = seed == context.settings.splits.seeds[0]
        run.freeze(folder / FROZEN_FOLDER, _metrics(chosen), champion=is_first_seed)
    write_sealed_json(folder / CANDIDATES_FILE, {"fingerprint": key, **_selection_json(selection)})


def _search_fingerprint(context: StageContext, seed: int, train: Table, validation: Table) -> str:
    settings = context.settings
    sections = [settings.search.model_dump(), settings.policies.model_dump()]
    return fingerprint("search", __version__, seed, train.fingerprints, validation.fingerprints, sections)


def _current(context: StageContext, seed: int, key: str) -> bool:
    try:
        read_frozen(context, seed)
        return search_key(context, seed) == key
    except ArtifactError:
        return False


def _provenance(context: StageContext, seed: int, outcomes: dict[str, str]) -> Provenance:
    reading = open_reading(context.settings, context.dataset)
    return Provenance(
        dataset=context.dataset,
        split_seed=seed,
        outcomes=outcomes,
        reader=reading.reader.name,
        judge=reading.reward.name,
        embedder=context.settings.llm.embedder,
        tokenizer=reading.counter.name,
    )


def _track(run: SearchRun, candidate: Candidate) -> None:
    source = json.dumps(candidate.fitted.policy.spec(), indent=1, sort_keys=True)
    run.candidate(TrackedCandidate(candidate.name, _metrics(candidate), source, tags={"kind": candidate.validation.kind}))


def _metrics(candidate: Candidate) -> dict[str, float | None]:
    validation = candidate.validation
    return {
        "J": validation.score,
        "C": validation.tokens,
        "objective": validation.objective,
        "structures": validation.structures,
        "unscored": float(validation.unscored),
        "train_J": candidate.train.score,
        "train_objective": candidate.train.objective,
    }


def _selection_json(selection: Selection) -> dict[str, object]:
    rows = [
        {"name": c.name, "spec": c.fitted.policy.spec(), "train": asdict(c.train), "validation": asdict(c.validation)}
        for c in selection.candidates
    ]
    return {"chosen": selection.chosen.name, "left_out": selection.left_out, "candidates": rows}
