"""Policies on the episodes that they were not made with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from mesa_pipeline.evaluation.health import Shown
from mesa_pipeline.evaluation.showing import Showing, Standing, standing
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.freeze import FrozenPolicy, load_frozen
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.storage import EpisodeEntry, Manifest
from mesa_pipeline.subsets import FULL_SUBSET


@dataclass(frozen=True)
class Contender:
    """A frozen policy that is, or would be, champion.

    Attributes:
        frozen: The policy.
        folder: Where it lies.
        made_on: Trajectory fingerprint of each episode that it was trained or selected on, by the episode's id; empty text
            where the episode is no longer there.
    """

    frozen: FrozenPolicy
    folder: Path
    made_on: Mapping[str, str]

    @classmethod
    def open(cls, context: StageContext, folder: Path, made_on: Mapping[str, str]) -> Self:
        """Read a frozen policy.

        Raises:
            ArtifactError: It is missing or was changed.
            PolicyError: It is a language model's code, and the sandbox here is weak.
        """
        frozen = load_frozen(folder, open_sandbox(context.settings.policies.sandbox))
        frozen.require_strong()
        return cls(frozen, folder, made_on)

    def unseen(self, entries: Sequence[EpisodeEntry]) -> frozenset[str]:
        """Ids of the episodes that it was not made with, neither under this id nor, with the same trajectory, under another."""
        trajectories = {trajectory for trajectory in self.made_on.values() if trajectory}
        return frozenset(e.id for e in entries if e.id not in self.made_on and e.trajectory not in trajectories)

    def choices(self, asked: OutcomeMatrix, labels: bool) -> np.ndarray:
        """Mask that it reads for each of n questions, shape ``(n,)``."""
        return self.frozen.fitted.choices(policy_inputs(asked, labels)) if len(asked) else np.zeros(0, dtype=np.int64)

    def shown(self, matrix: OutcomeMatrix, episodes: frozenset[str], labels: bool) -> Shown:
        """What it yields on the questions of some episodes, and what reading all five structures does."""
        asked = of_episodes(matrix, episodes)
        everything = np.full(len(asked), FULL_SUBSET, dtype=np.int64)
        return Shown(Showing.of(asked, self.choices(asked, labels), self.frozen.name), Showing.of(asked, everything, "all"))

    def standing(self, shown: Shown, context: StageContext) -> Standing | None:
        """Its figures; ``None`` where no question has a score."""
        lambda_, confidence = context.settings.search.lambda_, context.settings.nightly.confidence
        return standing(self.frozen.name, self.frozen.manifest_sha256, shown.policy, shown.everything, lambda_, confidence)


def of_episodes(matrix: OutcomeMatrix, episodes: frozenset[str]) -> OutcomeMatrix:
    """The questions of some episodes."""
    return matrix.select(np.array([episode in episodes for episode in matrix.episode_ids], dtype=bool))


def episodes_of(frozen: FrozenPolicy, manifest: Manifest) -> dict[str, str]:
    """Trajectory fingerprint of each episode of this dataset that a policy was trained or selected on, by id."""
    if frozen.provenance.dataset != manifest.dataset:
        return {}
    trajectories = {entry.id: entry.trajectory for entry in manifest.episodes}
    return {id: trajectories.get(id, "") for id in sorted(frozen.provenance.outcomes)}
