"""Track: bring MLflow up to date with what the workspace holds (docs/decisions/0116-mlflow-is-a-projection.md).

The workspace's artifacts are the truth; MLflow shows them. What MLflow has is left alone, so this may be stopped at any point,
run again, and run against another server or database.
"""

import logging
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mesa_pipeline.errors import ArtifactError, PolicyError
from mesa_pipeline.evaluation.held_out import Receipt, outcomes_sha256
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.archive import Archive
from mesa_pipeline.search.freeze import load_frozen
from mesa_pipeline.search.loop import SearchPlan, SearchProgress, unwatched
from mesa_pipeline.stages.champion import tell_night
from mesa_pipeline.stages.comparison_tracking import tracked_test
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.optimize import FROZEN_FOLDER, aliases_of, read_archive, read_frozen, read_result
from mesa_pipeline.stages.reigns import read_champion
from mesa_pipeline.stages.search_tracking import SearchRecorder, recorded_search, tracked_policy
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.table import read_table
from mesa_pipeline.stages.test import read_test
from mesa_pipeline.tracking import CHAMPION, TrackedSearch, Tracker
from mesa_pipeline.tracking.traces import TraceJournal
from mesa_pipeline.types import Summary

logger = logging.getLogger(__name__)
SEED_FOLDER = re.compile(r"seed-(\d+)")


def datasets_searched(workspace: Path) -> tuple[str, ...]:
    """The datasets of a workspace for which a policy was searched."""
    found = {path.parent.parent.name for name in ("policies", "ablations", "nightly") for path in workspace.glob(f"*/{name}/*")}
    return tuple(sorted(found))


def track(context: StageContext, tracker: Tracker) -> Summary:
    """Record every finished search of a dataset, its test, and the champion, where the tracker lacks them.

    A search that cannot be read is one failure and keeps no other from being recorded.

    Raises:
        MissingDependency: The tracker cannot be reached.
    """
    started = time.perf_counter()
    made, kept, failed = 0, 0, []
    searches = list(_searches(context))
    for position, search in enumerate(searches):
        context.progress(f"searches of {context.dataset}", position, len(searches))
        try:
            new = search.record(tracker)
        except (ArtifactError, PolicyError) as error:
            failed.append(f"{search.name}: {error}")
        else:
            made, kept = made + new, kept + (not new)
    context.progress(f"searches of {context.dataset}", len(searches), len(searches))
    facts = _crowned(context, tracker, failed)
    return Summary(f"track {context.dataset}", made, kept, time.perf_counter() - started, tuple(failed), facts)


def track_traces(context: StageContext, tracker: Tracker) -> Summary:
    """Record the traces of questions asked in a workspace that the tracker lacks.

    Args:
        context: Of the layout that memories of trajectories asked about are kept under.
        tracker: Where to.
    """
    started = time.perf_counter()
    traces = TraceJournal(context.layout.traces).read()
    new = 0
    for count in tracker.traces(traces):
        new += count
        context.progress("traces of questions", new, len(traces))
    return Summary("track questions", new, len(traces) - new, time.perf_counter() - started)


@dataclass(frozen=True)
class _Search:
    """One finished search of the workspace."""

    context: StageContext
    seed: int

    @property
    def name(self) -> str:
        layout = self.context.layout
        kind = "nightly" if layout.nightly else layout.ablation
        return f"seed {self.seed}" + (f" ({kind})" if kind else "")

    def record(self, tracker: Tracker) -> bool:
        """Whether anything was new."""
        context, seed = self.context, self.seed
        result, frozen = read_result(context, seed), read_frozen(context, seed)
        if frozen.provenance.search != result.fingerprint:
            raise ArtifactError(f"the policy frozen last is of another search; run `mesa optimize --seed {seed}` again")
        archive, search = read_archive(context, seed), recorded_search(context, seed, result)
        plan = SearchPlan(seed, result.iterations, 0, result.proposer, len(result.directions))
        with tracker.search(search) as run:
            recorder = SearchRecorder(run, unwatched)
            for iteration in range(result.iterations + 1):
                before = _until(archive, iteration)
                arms = before.arms(result.directions, context.settings.search)
                recorder.watch(SearchProgress(plan, iteration, before, arms))
            policy = tracked_policy(context.layout.policy(seed) / FROZEN_FOLDER, frozen)
            recorder.freeze(policy, archive.entry(result.chosen), aliases_of(context, seed))
        return self._record_test(tracker) or run.is_new

    def _record_test(self, tracker: Tracker) -> bool:
        if self.context.layout.nightly:
            return self._record_night(tracker)
        if not self.context.layout.test(self.seed).exists():
            return False
        tested, result = read_test(self.context, self.seed), read_result(self.context, self.seed)
        if tested.receipt.manifest_sha256 != read_frozen(self.context, self.seed).manifest_sha256:
            return False
        search = recorded_search(self.context, self.seed, result)
        return tracker.test(search, tracked_test(tested, self._tested_on(tested.receipt)))

    def _record_night(self, tracker: Tracker) -> bool:
        try:
            return tell_night(replace(self.context, layout=replace(self.context.layout, nightly=False)), tracker)
        except ArtifactError as error:
            logger.info("%s is recorded without its night: %s", self.name, error)
            return False

    def _tested_on(self, receipt: Receipt) -> OutcomeMatrix | None:
        """The outcomes of a test; ``None`` where there are others by now, or none that the settings as they are go with."""
        try:
            matrix = read_table(self.context, read_split(self.context, self.seed).test).matrix
        except ArtifactError as error:
            logger.info("%s is recorded without its questions: %s", self.name, error)
            return None
        return matrix if outcomes_sha256(matrix) == receipt.outcomes_sha256 else None


def _searches(context: StageContext) -> Iterator[_Search]:
    root = context.layout
    ablations = sorted(path.name for path in (root.root / "ablations").glob("*") if path.is_dir())
    for layout in (root, *(replace(root, ablation=name) for name in ablations), replace(root, nightly=True)):
        there = replace(context, layout=layout)
        folders = sorted(layout.policy(0).parent.glob("seed-*"))
        seeds = sorted(int(found[1]) for path in folders if (found := SEED_FOLDER.fullmatch(path.name)))
        yield from (_Search(there, seed) for seed in seeds if (layout.policy(seed) / "search.json").exists())


def _until(archive: Archive, iteration: int) -> Archive:
    """The archive as it stood after an iteration."""
    entries = tuple(entry for entry in archive.entries if entry.iteration <= iteration)
    return Archive(entries, tuple(rejection for rejection in archive.rejections if rejection.iteration <= iteration))


def _crowned(context: StageContext, tracker: Tracker, failed: list[str]) -> dict[str, object]:
    """Let the tracker's champion be the one that reigns."""
    try:
        champion = read_champion(context.layout)
        if champion is None:
            return {}
        frozen = load_frozen(champion.folder, open_sandbox(context.settings.policies.sandbox))
    except (ArtifactError, PolicyError) as error:
        failed.append(f"champion: {error}")
        return {}
    search = TrackedSearch(context.dataset, frozen.provenance.split_seed, frozen.provenance.search)
    tracker.promote(search, tracked_policy(champion.folder, frozen), CHAMPION)
    return {"champion": champion.name}
