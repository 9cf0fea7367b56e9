"""What a search tells the tracker and whoever watches it.

Scores and objectives are told times a hundred: the tracker's pages show three decimals, which policies may have in common.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mesa_pipeline import __version__
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.search.freeze import FrozenPolicy
from mesa_pipeline.search.loop import SearchProgress
from mesa_pipeline.search.records import ArchiveEntry, Rejection
from mesa_pipeline.search.result import SearchResult
from mesa_pipeline.search.ucb import bonus_to_spread
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import open_reading
from mesa_pipeline.tracking import SearchRun, TrackedCandidate, TrackedPolicy, TrackedSearch

SOURCE_FILE = "policy.py"


class SearchRecorder:
    """Records each candidate once, as the search goes on.

    Args:
        run: Where candidates are recorded.
        watcher: Told how far the search is, too.
    """

    def __init__(self, run: SearchRun, watcher: Callable[[SearchProgress], None]) -> None:
        self._run = run
        self._watcher = watcher
        self._entries = 0
        self._rejections = 0

    def watch(self, progress: SearchProgress) -> None:
        """Record what the archive has that was not recorded yet."""
        for entry in progress.archive.entries[self._entries :]:
            self._run.candidate(_of_entry(entry))
        for rejection in progress.archive.rejections[self._rejections :]:
            self._run.candidate(_of_rejection(rejection))
        self._entries = len(progress.archive.entries)
        self._rejections = len(progress.archive.rejections)
        self._run.progress(progress.iteration, progress_metrics(progress))
        self._watcher(progress)

    def freeze(self, policy: TrackedPolicy, entry: ArchiveEntry, aliases: Sequence[str]) -> None:
        """Record the frozen policy, with all that is known of the candidate it was."""
        self._run.freeze(replace(policy, metrics=entry_metrics(entry)), aliases)


def tracked_policy(directory: Path, policy: FrozenPolicy) -> TrackedPolicy:
    """A frozen policy as the tracker knows it.

    Args:
        directory: Where it is frozen.
        policy: The same, read.
    """
    made, worth = policy.provenance, policy.validation
    score = f"{100 * worth.score:.2f}"
    return TrackedPolicy(
        directory=directory,
        metrics=worth_metrics(worth),
        tags={
            "mesa.policy": policy.name,
            "mesa.validation_score": score,
            "mesa.validation_tokens": f"{worth.tokens:.0f}",
            "mesa.package_version": __version__,
            "mesa.profile": made.profile or "unknown",
            "mesa.manifest_sha256": policy.manifest_sha256,
        },
        description=(
            f"{policy.name}: chosen on split seed {made.split_seed} of {made.dataset}, where it scored {score} of 100 on "
            f"{worth.n} validation questions with {worth.tokens:,.0f} evidence tokens a question. Written by {made.proposer}, "
            f"scored by {made.judge} on the answers of {made.reader}; settings: {made.profile or 'unknown'}."
        ),
    )


def tracked_search(context: StageContext, seed: int, key: str, proposer: str) -> TrackedSearch:
    """The search as the tracker knows it."""
    reading, search = open_reading(context.settings, context.layout), context.settings.search
    params = {
        "lambda": search.lambda_,
        "iterations": search.iterations,
        "beta": search.ucb.beta,
        "directions": ",".join(search.directions) if search.directions else "all",
        "labels": search.labels,
        "max_structures": search.max_structures,
        "select": search.select,
        "proposer": proposer,
        "ablation": context.layout.ablation or "none",
        "reader": reading.reader.name,
        "reward": reading.reward.name,
        "embedder": context.settings.llm.embedder_name,
        "tokenizer": reading.counter.name,
        "profile": context.settings.profile_label,
        "package_version": __version__,
    }
    return TrackedSearch(context.dataset, seed, key, params, _variation(context))


def recorded_search(context: StageContext, seed: int, result: SearchResult) -> TrackedSearch:
    """A finished search as the tracker knows it, told from its ``search.json``: settings may have changed since."""
    return TrackedSearch(context.dataset, seed, result.fingerprint, result.tracked, _variation(context))


def entry_metrics(entry: ArchiveEntry) -> Mapping[str, float | None]:
    """What a valid candidate is worth: on validation, and under ``train_`` on the questions it was fitted to."""
    return {
        **worth_metrics(entry.validation),
        "train_J": 100 * entry.train.score,
        "train_C": entry.train.tokens,
        "train_objective": 100 * entry.train.objective,
        "iteration": float(entry.iteration),
    }


def worth_metrics(worth: Evaluation) -> Mapping[str, float | None]:
    """What a policy is worth on validation."""
    return {
        "J": 100 * worth.score,
        "C": worth.tokens,
        "objective": 100 * worth.objective,
        "structures": worth.structures,
        "unscored": float(worth.unscored),
    }


def progress_metrics(progress: SearchProgress) -> Mapping[str, float | None]:
    """How the search as a whole stands: best so far, candidates counted, and what each arm has brought."""
    best = progress.archive.frontier.validation
    repeats = sum(rejection.duplicate_of is not None for rejection in progress.archive.rejections)
    figures: dict[str, float | None] = {
        "best/J": 100 * best.score,
        "best/C": best.tokens,
        "best/objective": 100 * best.objective,
        "candidates/evaluated": float(len(progress.archive.entries) - 1),
        "candidates/duplicate": float(repeats),
        "candidates/invalid": float(len(progress.archive.rejections) - repeats),
        "bonus_to_spread": bonus_to_spread(progress.arms),
    }
    for arm in progress.arms:
        figures |= {f"pulls/{arm.direction}": float(arm.pulls), f"value/{arm.direction}": 100 * arm.value}
    return figures


def _variation(context: StageContext) -> str:
    return "nightly" if context.layout.nightly else context.layout.ablation or ""


def _of_entry(entry: ArchiveEntry) -> TrackedCandidate:
    params = {
        "status": "evaluated",
        "direction": entry.direction or "none",
        "slot": entry.slot or "none",
        "parents": ", ".join(entry.parents),
        "hypothesis": entry.hypothesis,
        "selections": entry.behaviour[:12],
        "off_direction": ", ".join(entry.off_direction),
    }
    return TrackedCandidate(
        name=entry.id,
        metrics=entry_metrics(entry),
        source=entry.source,
        source_file=SOURCE_FILE,
        params=_filled(params),
    )


def _of_rejection(rejection: Rejection) -> TrackedCandidate:
    is_invalid = rejection.duplicate_of is None
    params = {
        "status": "invalid" if is_invalid else "duplicate",
        "direction": rejection.direction,
        "slot": rejection.id.partition("-")[2],
        "reason": rejection.reason,
        "duplicate_of": rejection.duplicate_of or "",
    }
    return TrackedCandidate(
        name=rejection.id,
        metrics={},
        source=rejection.source,
        source_file=SOURCE_FILE,
        valid=not is_invalid,
        params=_filled(params),
    )


def _filled(params: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in params.items() if value}
