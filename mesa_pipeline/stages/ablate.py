"""Ablate: the same search with some settings changed, tested beside the one with the settings as they are (paper, Table 3)."""

import time
from dataclasses import replace

from mesa_pipeline.config import Settings, Variation
from mesa_pipeline.errors import ConfigError, TooFewEpisodes
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.optimize import optimize
from mesa_pipeline.stages.test import test
from mesa_pipeline.tracking import Tracker
from mesa_pipeline.types import Summary


def ablate(context: StageContext, ablation: Variation, seed: int, tracker: Tracker) -> Summary:
    """Search and test one ablation on one split; one whose rule needs more episodes than there are is left out, and says so.

    Raises:
        ArtifactError: The split or some outcomes are missing; says which command makes them.
        ConfigError: The ablation changes what a search does not read.
    """
    changed, stage = ablated(context, ablation), f"{ablation.name}, seed {seed}"
    started = time.perf_counter()
    try:
        searched = optimize(changed, seed, tracker)
    except TooFewEpisodes as error:
        return Summary(stage, 0, 0, time.perf_counter() - started, facts={"left_out": str(error)})
    tested = test(changed, seed, tracker)
    return Summary(
        stage=stage,
        made=searched.made + tested.made,
        kept=searched.kept + tested.kept,
        seconds=searched.seconds + tested.seconds,
        facts={**tested.facts, **searched.facts},
    )


def ablated(context: StageContext, ablation: Variation) -> StageContext:
    """The context in which ``optimize`` and ``test`` make an ablation's policy, under a folder of its own.

    Raises:
        ConfigError: The ablation changes a setting that is not there or that a search does not read.
    """
    settings = context.settings.ablated(ablation)
    if (
        settings.model_copy(update={"search": context.settings.search, "policies": context.settings.policies})
        != context.settings
    ):
        raise ConfigError(f"ablation {ablation.name!r}: it may change settings under search and policies only")
    return replace(context, settings=settings, layout=replace(context.layout, ablation=ablation.key))


def find_ablations(settings: Settings, names: tuple[str, ...]) -> tuple[Variation, ...]:
    """The ablations of some names, all of them where none is named.

    Raises:
        ConfigError: There is none of a name; lists those there are.
    """
    known = {ablation.name: ablation for ablation in settings.ablations}
    for name in names:
        if name not in known:
            raise ConfigError(f"no ablation {name!r}; known are {', '.join(known)} (section ablations of the settings)")
    return tuple(known[name] for name in names or known)
