"""MESA from Python: ask questions over trajectories with a frozen policy.

Like the command line, this is a root: settings and environment are read here.
"""

import logging
from pathlib import Path
from typing import NamedTuple

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.errors import ArtifactError, ConfigError
from mesa_pipeline.policies import FittedPolicy
from mesa_pipeline.policies.budget import TokenBudget
from mesa_pipeline.policies.fixed import FixedPolicy
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.freeze import FrozenPolicy, load_frozen
from mesa_pipeline.stages.ask import AskResult, MemoryShelf, Selector, ask
from mesa_pipeline.stages.models import open_reading, structures_of
from mesa_pipeline.stages.optimize import FROZEN_FOLDER
from mesa_pipeline.stages.reigns import latest_champion, read_champion
from mesa_pipeline.tracking.traces import Trace, TraceJournal
from mesa_pipeline.types import Trajectory

SHELF = "asked"
logger = logging.getLogger(__name__)


class Mesa:
    """Answers questions, reading only the structures that a policy selects; memories are built once and kept.

    Args:
        workspace: Folder of the artifacts; memories of trajectories asked about are kept in it.
        policy: A frozen policy's folder, or a fixed subset such as ``"S+T"``; by default the champion of ``dataset``, else the
            policy frozen last in the workspace.
        settings: By default those of ``params.yaml`` and the environment.
        max_evidence_tokens: Hard limit on the evidence read for a question, at least 0; by default there is none.
        trace: Keep what was done for each question, in the workspace, for ``mesa track`` to record in MLflow; never where
            the settings turn tracking off.
        dataset: Whose champion is asked; where none is named, the champion crowned last in the workspace.
        seed: Ask the policy frozen for this split seed of the dataset instead.

    Raises:
        ArtifactError: There is no such policy; says how to make one.
        ConfigError: The settings or the limit are wrong.
        PolicyError: The policy is a language model's code, and the sandbox here is weak.
    """

    def __init__(
        self,
        workspace: Path = Path("workspace"),
        policy: str | Path | None = None,
        settings: Settings | None = None,
        max_evidence_tokens: int | None = None,
        trace: bool = True,
        dataset: str | None = None,
        seed: int | None = None,
    ) -> None:
        self._settings = settings or load_settings()
        self._limit = _require_limit(max_evidence_tokens)
        found = find_policy(policy, workspace, dataset, seed)
        self.policy = found.described
        """Which policy answers, in a few words."""
        self._policy = open_selector(found.policy, self._settings)
        shelf = Layout(workspace, SHELF)
        self._memories = MemoryShelf(structures_of(self._settings, workspace), shelf)
        self._reading = open_reading(self._settings, shelf)
        self._traces = TraceJournal(shelf.traces) if trace and self._settings.tracking.enabled else None

    def ask(self, question: str, trajectory: Trajectory, max_evidence_tokens: int | None = None) -> AskResult:
        """Answer one question over one trajectory; the result says what was read, why, and what it cost.

        Args:
            question: The question.
            trajectory: What it is about.
            max_evidence_tokens: Hard limit on the evidence read; by default that of this object. Where the policy's choice
                does not fit, all five structures are retrieved from to find what does.

        Raises:
            ConfigError: The limit is not a whole number of at least 0.
        """
        limit = self._limit if max_evidence_tokens is None else _require_limit(max_evidence_tokens)
        values = self._policy.values if isinstance(self._policy, FrozenPolicy) else None
        budget = None if limit is None else TokenBudget(limit, values)
        previews = self._settings.previews
        result = ask(question, trajectory, self._policy, self._memories, self._reading, previews, budget)
        if self._traces:
            self._keep(result.trace, self._traces)
        return result

    def _keep(self, trace: Trace, journal: TraceJournal) -> None:
        """A trace that cannot be kept is no reason to be without the answer."""
        try:
            journal.append(trace)
        except ArtifactError as error:
            logger.warning("the trace of this question was not kept: %s", error)


class FoundPolicy(NamedTuple):
    """A policy by folder or label, and in a few words which one it is."""

    policy: str | Path
    described: str


def find_policy(policy: str | Path | None, workspace: Path, dataset: str | None, seed: int | None) -> FoundPolicy:
    """Which policy is to answer: the one named, that of a split seed, the champion, or the one frozen last in the workspace.

    Raises:
        ArtifactError: There is none; says how to make one.
        ConfigError: A seed was given and no dataset, or a policy beside it.
    """
    if seed is not None:
        if dataset is None or policy is not None:
            raise ConfigError("a split seed names a policy of a dataset: give the dataset, and no policy beside it")
        folder = Layout(workspace, dataset).policy(seed) / FROZEN_FOLDER
        if not folder.is_dir():
            raise ArtifactError(
                f"no policy of split seed {seed} in {folder}; run `mesa optimize --dataset {dataset} --seed {seed}`"
            )
        return FoundPolicy(folder, f"split seed {seed} of {dataset}")
    if policy is not None:
        return FoundPolicy(policy, str(policy))
    champion = read_champion(Layout(workspace, dataset)) if dataset else latest_champion(workspace)
    if champion:
        return FoundPolicy(champion.folder, f"{champion.name}, champion of {champion.dataset} since {champion.since}")
    folder = _latest_frozen(workspace)
    return FoundPolicy(folder, f"the one frozen last, {folder.relative_to(workspace)}")


def open_selector(policy: str | Path, settings: Settings) -> Selector:
    """A frozen policy by folder, or a fixed subset by its label.

    Raises:
        ArtifactError: There is none; says how to make one.
        PolicyError: It is a language model's code, and the sandbox here is weak.
    """
    if str(policy) and Path(policy).is_dir():
        frozen = load_frozen(Path(policy), open_sandbox(settings.policies.sandbox))
        frozen.require_strong()
        return frozen
    codes = str(policy).upper().split("+")
    if not set(codes) <= set(subsets.STRUCTURE_CODES):
        known = "+".join(subsets.STRUCTURE_CODES)
        raise ArtifactError(f"policy {str(policy)!r} is neither a folder nor a subset of {known}, such as S+T")
    return FittedPolicy(FixedPolicy(subsets.encode(codes)), {})


def _latest_frozen(workspace: Path) -> Path:
    manifests = sorted(workspace.glob("*/policies/seed-*/frozen/manifest.json"), key=lambda path: path.stat().st_mtime)
    if not manifests:
        raise ArtifactError(
            f"no frozen policy in {workspace}; make one with `mesa run`, or choose structures yourself, as in --policy S+T"
        )
    return manifests[-1].parent


def _require_limit(limit: int | None) -> int | None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise ConfigError(f"max_evidence_tokens must be a whole number of at least 0, not {limit!r}")
    return limit
