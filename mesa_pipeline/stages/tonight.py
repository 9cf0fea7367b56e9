"""What a night is decided on, and how."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.evaluation.contest import Contest, contest, first_contest
from mesa_pipeline.evaluation.health import Shown, health_of
from mesa_pipeline.evaluation.held_out import outcomes_sha256
from mesa_pipeline.evaluation.nights import Changes, How, Night
from mesa_pipeline.stages.circumstances import changes, circumstances, fingerprints
from mesa_pipeline.stages.contenders import Contender, episodes_of, of_episodes
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.night_tracking import tracked_night
from mesa_pipeline.stages.optimize import FROZEN_FOLDER
from mesa_pipeline.stages.reigns import Reign, Throne
from mesa_pipeline.stages.storage import Manifest, read_manifest
from mesa_pipeline.stages.table import Table, read_table
from mesa_pipeline.tracking import TrackedTest

NIGHT_VERSION = 1
"""Raised when a night decides something else on the same policies and outcomes."""


def challenger_folder(context: StageContext) -> Path:
    """Where the challenger is frozen."""
    return nightly_of(context).layout.policy(context.settings.nightly.seed) / FROZEN_FOLDER


def nightly_of(context: StageContext) -> StageContext:
    """Where challengers are split and searched for, apart from the policies of the report."""
    return replace(context, layout=replace(context.layout, nightly=True))


@dataclass(frozen=True)
class Tonight:
    """What a night is decided on.

    Attributes:
        context: Of the dataset.
        manifest: Its episodes.
        table: Outcomes of the episodes that one of the two was not made with.
        challenger: Who was searched for.
        champion: Who reigns; ``None`` where nobody does.
        reign: The reign of that.
    """

    context: StageContext
    manifest: Manifest
    table: Table
    challenger: Contender
    champion: Contender | None
    reign: Reign | None

    @classmethod
    def of(cls, context: StageContext, throne: Throne) -> Self:
        """What there is to decide on now.

        Raises:
            ArtifactError: No challenger is frozen, or some outcomes are missing; says which command makes them.
            PolicyError: A policy is a language model's code, and the sandbox here is weak.
        """
        manifest, number = read_manifest(context.layout), throne.reigning()
        known = Contender.open(context, challenger_folder(context), {})
        challenger = replace(known, made_on=episodes_of(known.frozen, manifest))
        reign = None if number is None else throne.reign(number)
        champion = None if number is None else _of_reign(context, throne, number)
        table = read_unseen(context, manifest, [challenger, *([champion] if champion else [])])
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
            reign = reign_of(self.context, throne.next_number(), self.challenger, how, at)
            throne.begin(reign, self.challenger.folder, shown)
            night = replace(night, tenure=reign.number)
        throne.remember(night)

    def told(self, throne: Throne) -> TrackedTest:
        """The last night as a tracker shows it: its two policies on the questions that neither was made with.

        Args:
            throne: Whose last night was decided on this.
        """
        before = throne.challenged()
        rival = None if before is None else _of_reign(self.context, throne, before)
        sides = {"challenger": self.challenger, **({"champion": rival} if rival else {})}
        neither = frozenset.intersection(*(side.unseen(self.manifest.episodes) for side in sides.values()))
        asked = of_episodes(self.table.matrix, neither)
        choices = {role: side.choices(asked, self.context.settings.search.labels) for role, side in sides.items()}
        names = {role: side.frozen.name for role, side in sides.items()}
        return tracked_night(throne.nights()[-1], asked, choices, names)

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


def read_unseen(context: StageContext, manifest: Manifest, contenders: Sequence[Contender]) -> Table:
    """Outcomes of the episodes that some contender was not made with; raises as ``read_table``."""
    asked = [entry for entry in manifest.episodes if entry.question_count]
    return read_table(context, frozenset().union(*(contender.unseen(asked) for contender in contenders)))


def reign_of(context: StageContext, number: int, contender: Contender, how: How, at: str) -> Reign:
    """The reign that a contender begins, under the circumstances of now."""
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


def _of_reign(context: StageContext, throne: Throne, number: int) -> Contender:
    return Contender.open(context, throne.frozen_folder(number), throne.reign(number).made_on)
