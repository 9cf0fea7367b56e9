"""How far each judge puts the frozen policy before every other system, paired by question (paper, Table 6)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.config import EvaluationSettings
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.evaluation.panel import JudgedSeed, Lead, Panel, Voice, voices
from mesa_pipeline.evaluation.statistics import Interval, paired_bootstrap


@dataclass(frozen=True)
class LeadStanding:
    """One judge on the frozen policy less one system, over the test questions of all seeds.

    Attributes:
        judge: Its name, or ``majority``.
        system: Which system the frozen policy is before, or behind.
        difference: Its mean, with an interval that resamples whole episodes.
    """

    judge: str
    system: str
    difference: Interval


def leads(panel: Panel) -> tuple[Lead, ...]:
    """Every judge, then the majority, on the frozen policy less every other system, in the order of first appearance."""
    others = [system for system in dict.fromkeys(panel.systems.tolist()) if system != FROZEN_ROW]
    return tuple(_lead(panel, voice, system) for voice in voices(panel) for system in others)


def lead_standings(seeds: Sequence[JudgedSeed], settings: EvaluationSettings) -> tuple[LeadStanding, ...]:
    """The leads of all seeds together; those of which no question has both verdicts are left out."""
    found: dict[tuple[str, str], list[Lead]] = defaultdict(list)
    for lead in (lead for judged in seeds for lead in judged.leads):
        if lead.counts:
            found[lead.judge, lead.system].append(lead)
    return tuple(LeadStanding(*names, _pooled(some, settings)) for names, some in found.items())


def _lead(panel: Panel, voice: Voice, system: str) -> Lead:
    ours, theirs = panel.systems == FROZEN_ROW, panel.systems == system
    scored = dict(zip(panel.questions[ours].tolist(), voice.scores[ours].tolist(), strict=True))
    sums: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for question, episode, score in zip(
        panel.questions[theirs].tolist(), panel.episodes[theirs].tolist(), voice.scores[theirs].tolist(), strict=True
    ):
        difference = scored.get(question, np.nan) - score
        if not np.isnan(difference):
            sums[episode] += difference
            counts[episode] += 1
    return Lead(voice.judge, system, dict(sums), dict(counts))


def _pooled(some: Sequence[Lead], settings: EvaluationSettings) -> Interval:
    """Each question counts with its episode's mean: where whole episodes are drawn, only their sums and numbers matter."""
    counted = [(episode, lead.sums[episode] / n, n) for lead in some for episode, n in lead.counts.items()]
    differences = np.concatenate([np.full(n, mean) for _, mean, n in counted])
    episodes = np.concatenate([np.full(n, episode, dtype=object) for episode, _, n in counted])
    samples, confidence, seed = settings.bootstrap_samples, settings.confidence, settings.bootstrap_seed
    return paired_bootstrap(differences, episodes.astype(str), samples, confidence, seed)
