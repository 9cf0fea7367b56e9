"""Optimize: search for a policy on training and validation outcomes, and freeze the best. Test outcomes stay unopened."""

import logging
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from mesa_pipeline import __version__
from mesa_pipeline.artifacts import exclusive, fingerprint, read_json_as, write_sealed_json
from mesa_pipeline.errors import ArtifactError, PolicyError
from mesa_pipeline.policies import FitContext, FittedPolicy
from mesa_pipeline.policies.sandbox import open_sandbox, require_strong
from mesa_pipeline.policies.values import fit_values
from mesa_pipeline.reading.previews import PREVIEWS_VERSION
from mesa_pipeline.search.archive import Archive, fold
from mesa_pipeline.search.data import SearchData
from mesa_pipeline.search.directions import Direction, open_directions
from mesa_pipeline.search.freeze import FrozenPolicy, Provenance, freeze, load_frozen
from mesa_pipeline.search.loop import Search
from mesa_pipeline.search.proposers import Proposer, open_proposer
from mesa_pipeline.search.result import Chosen, SearchResult, choose
from mesa_pipeline.search.store import SearchStore
from mesa_pipeline.search.ucb import bonus_to_spread
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import chat_opener, open_reading
from mesa_pipeline.stages.parallel import worker_count
from mesa_pipeline.stages.search_tracking import SearchRecorder, tracked_policy, tracked_search
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.table import Table, read_table
from mesa_pipeline.tracking import CHALLENGER, CHAMPION, Tracker
from mesa_pipeline.types import Summary

RESULT_FILE = "search.json"
SEARCH_FOLDER = "search"
FROZEN_FOLDER = "frozen"
CHOSEN_BY = {"iterations", "select", "lcb_z", "refit"}
"""Settings of how far a search goes and of what is chosen from it; they change nothing that any iteration finds."""
NOTHING_TRIED = (
    "the search of split seed %d tried nothing: all %d candidates were invalid or repeated, so what is frozen is the policy it "
    "began with; the reasons stand in its log. A proposer that writes valid policies is needed: %s does not"
)
logger = logging.getLogger(__name__)


def optimize(context: StageContext, seed: int, tracker: Tracker) -> Summary:
    """Search on train and validation, choose by J - lambda C on validation (paper, Algorithm 1), freeze the choice.

    A search that was stopped is continued. So is one that is now to have more iterations.

    Raises:
        ArtifactError: The split or some outcomes are missing; says which command makes them.
        PolicyError: Code of a language model would run in a weak sandbox.
    """
    started = time.perf_counter()
    split = read_split(context, seed)
    train, validation = read_table(context, split.train), read_table(context, split.val)
    job = _Job(context, seed, train, validation)
    kept = job.is_done()
    if not kept:
        with exclusive(context.layout):
            kept = job.is_done()  # by another process, until the workspace was free
            if not kept:
                job.run(tracker)
    facts = _facts(context, seed)
    if unswept := len(train.unswept) + len(validation.unswept):
        facts["questions_without_outcome"] = unswept
    return Summary(job.stage, int(not kept), int(kept), time.perf_counter() - started, facts=facts)


def read_frozen(context: StageContext, seed: int) -> FrozenPolicy:
    """The frozen policy of a seed.

    Raises:
        ArtifactError: There is none, or it was tampered with.
    """
    sandbox = open_sandbox(context.settings.policies.sandbox)
    return load_frozen(context.layout.policy(seed) / FROZEN_FOLDER, sandbox)


def read_result(context: StageContext, seed: int) -> SearchResult:
    """What the search of a seed tried and chose, as ``search.json`` has it.

    Raises:
        ArtifactError: There has been none, or another version made it.
    """
    return read_json_as(SearchResult.from_json, context.layout.policy(seed) / RESULT_FILE, f"mesa optimize --seed {seed}")


def read_archive(context: StageContext, seed: int) -> Archive:
    """Every candidate of a seed's search.

    Raises:
        ArtifactError: There has been no search, another version made it, or its log is damaged.
    """
    result, store = read_result(context, seed), open_store(context, seed)
    archive = fold(store, before=result.iterations + 1)
    if len(archive.entries) - 1 + len(archive.rejections) != result.planned:
        raise ArtifactError(f"the log in {store.folder} is not the one that was searched; run `mesa optimize --seed {seed}`")
    return archive


def open_store(context: StageContext, seed: int) -> SearchStore:
    """The folder of a seed's finished search.

    Raises:
        ArtifactError: There has been no search, another version made it, or its log is damaged.
    """
    return SearchStore(context.layout.policy(seed) / SEARCH_FOLDER / read_result(context, seed).search)


def aliases_of(context: StageContext, seed: int) -> tuple[str, ...]:
    """Names of a frozen policy in the model registry; an ablation's has none.

    Until somebody reigns, the first split seed's policy is the champion. From then on the champion is who reigns.
    """
    layout = context.layout
    if layout.ablation:
        return ()
    if layout.nightly:
        return (CHALLENGER,)
    is_champion = seed == context.settings.splits.seeds[0] and not layout.champion.exists()
    return (f"seed-{seed}", *((CHAMPION,) if is_champion else ()))


def is_optimized(context: StageContext, seed: int) -> bool:
    """Whether the frozen policy is the one that the search chooses with the settings and outcomes as they are."""
    try:
        split = read_split(context, seed)
        return _Job(context, seed, read_table(context, split.train), read_table(context, split.val)).is_done()
    except ArtifactError:
        return False


class _Job:
    """One search: what it depends on, and running it."""

    def __init__(self, context: StageContext, seed: int, train: Table, validation: Table) -> None:
        self._context = context
        self._seed = seed
        self._train = train
        self._validation = validation
        self._folder = context.layout.policy(seed)
        self._directions: tuple[Direction, ...] = open_directions(context.settings.search.directions)
        settings = context.settings
        chat = chat_opener(settings, context.layout.workspace)
        self._proposer: Proposer = open_proposer(settings.search, settings.policies.sandbox, chat)
        self._search_key = self._searched_by()
        self.key = self._chosen_by()

    @property
    def stage(self) -> str:
        ablation = self._context.layout.ablation
        return f"optimize seed {self._seed}" + (f" ({ablation})" if ablation else "")

    def is_done(self) -> bool:
        try:
            is_current = read_result(self._context, self._seed).fingerprint == self.key
            read_archive(self._context, self._seed)
            return is_current and read_frozen(self._context, self._seed).provenance.search == self.key
        except (ArtifactError, PolicyError):
            return False

    def run(self, tracker: Tracker) -> None:
        settings = self._context.settings
        sandbox = open_sandbox(settings.policies.sandbox)
        require_strong(sandbox, "template" if self._proposer.trusted else "llm")
        context = FitContext.of(settings, self._seed)
        data = SearchData.of(self._train.matrix, self._validation.matrix, context)
        store = self._open_store()
        tracked = tracked_search(self._context, self._seed, self.key, self._proposer.name)
        with tracker.search(tracked) as run:
            recorder = SearchRecorder(run, self._context.watch_search)
            search = Search(
                data=data,
                store=store,
                proposer=self._proposer,
                directions=self._directions,
                sandbox=sandbox,
                settings=settings.search,
                workers=min(worker_count(settings.run.workers), len(settings.search.slots)),
                watch=recorder.watch,
            )
            archive = search.run()
            if len(archive.entries) == 1:
                logger.warning(NOTHING_TRIED, self._seed, len(archive.rejections), self._proposer.name)
            chosen = choose(archive, store, data, sandbox, settings.search)
            fitted = FittedPolicy(chosen.policy, chosen.state)
            values = fit_values(self._train.matrix, settings.policies.route_keys, context)
            frozen = self._folder / FROZEN_FOLDER
            (self._folder / RESULT_FILE).unlink(missing_ok=True)
            policy = freeze(frozen, fitted, self._provenance(), chosen.entry.validation, values, sandbox)
            recorder.freeze(tracked_policy(frozen, policy), chosen.entry, aliases_of(self._context, self._seed))
        left_out = len(self._validation.matrix) - len(data.validation)
        spent = store.spent(settings.search.iterations)
        result = self._result(archive, chosen, left_out, spent, tracked.params)
        write_sealed_json(self._folder / RESULT_FILE, result.to_json())

    def _open_store(self) -> SearchStore:
        """The store to continue in; searches with other settings lie beside it.

        An ablation that differs in what is chosen alone takes over the search made with the settings as they are; so does a
        challenger whose split has not grown yet.
        """
        folder = self._folder / SEARCH_FOLDER / self._search_key
        made = replace(self._context.layout, ablation=None, nightly=False).policy(self._seed) / SEARCH_FOLDER / self._search_key
        if made.exists() and not folder.exists():
            _copy_folder(made, folder)
        return SearchStore(folder)

    def _searched_by(self) -> str:
        """Key of what the iterations find."""
        settings = self._context.settings
        return fingerprint(
            "search",
            __version__,
            self._seed,
            self._train.fingerprints,
            self._validation.fingerprints,
            [settings.previews.model_dump(), PREVIEWS_VERSION],
            settings.policies.model_dump(exclude={"lookup_keys", "route_keys", "zero_shot"}),
            settings.search.model_dump(exclude=CHOSEN_BY),
            self._proposer.name,
            [asdict(direction) | {"guidance": direction.guidance} for direction in self._directions],
        )

    def _chosen_by(self) -> str:
        """Key of what is frozen."""
        settings = self._context.settings
        return fingerprint(
            "choice", self._search_key, settings.search.model_dump(include=CHOSEN_BY), settings.policies.route_keys
        )

    def _provenance(self) -> Provenance:
        settings, reading = self._context.settings, open_reading(self._context.settings, self._context.layout)
        return Provenance(
            dataset=self._context.dataset,
            split_seed=self._seed,
            outcomes={**self._train.fingerprints, **self._validation.fingerprints},
            reader=reading.reader.name,
            judge=reading.reward.name,
            embedder=settings.llm.embedder_name,
            tokenizer=reading.counter.name,
            proposer=self._proposer.name,
            search=self.key,
            profile=settings.profile_label,
        )

    def _result(
        self, archive: Archive, chosen: Chosen, left_out: int, spent: Mapping[str, int], tracked: Mapping[str, object]
    ) -> SearchResult:
        search = self._context.settings.search
        return SearchResult(
            fingerprint=self.key,
            search=self._search_key,
            chosen=chosen.entry.id,
            rule=search.select,
            iterations=search.iterations,
            planned=search.iterations * len(search.slots),
            evaluated=len(archive.entries) - 1,
            invalid=sum(rejection.duplicate_of is None for rejection in archive.rejections),
            duplicates=sum(rejection.duplicate_of is not None for rejection in archive.rejections),
            left_out=left_out,
            directions=tuple(direction.id for direction in self._directions),
            proposer=self._proposer.name,
            spent=spent,
            tracked=tracked,
        )


def _copy_folder(made: Path, folder: Path) -> None:
    """Copied under another name first, so that a copy that was stopped is nobody's to continue."""
    unfinished = folder.with_name(f".{folder.name}.tmp")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(made, unfinished)
        unfinished.rename(folder)
    except OSError as error:
        raise ArtifactError(f"cannot copy {made} to {folder}: {error}; free space or choose another --workspace") from error


def _facts(context: StageContext, seed: int) -> dict[str, object]:
    frozen, result = read_frozen(context, seed), read_result(context, seed)
    tried = f"{result.evaluated} evaluated, {result.duplicates} duplicates, {result.invalid} invalid"
    spent = ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in sorted(result.spent.items()))
    ratio = bonus_to_spread(read_archive(context, seed).arms(result.directions, context.settings.search))
    return {
        "chosen": frozen.name,
        "validation_score": round(100 * frozen.validation.score, 2),
        "validation_tokens": round(frozen.validation.tokens),
        "candidates": f"{result.planned} planned: {tried}",
        **({"proposer spent": spent} if spent else {}),
        "bonus_to_spread": "unknown" if ratio is None else f"{ratio:.1f}",
    }
