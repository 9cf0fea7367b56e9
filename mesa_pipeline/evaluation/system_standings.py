"""How systems compared on the same held-out questions stand, on all of them and on groups (paper, Tables 1, 2, 4, 5 and 7).

A question without a score is left out of means and counted; a question that a system was not asked is counted apart.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mesa_pipeline.config import EvaluationSettings
from mesa_pipeline.evaluation.compared_systems import Asked, ComparedSystem, Comparison, SystemKind
from mesa_pipeline.evaluation.statistics import Interval, MeanStd, mean_and_sample_std, paired_bootstrap
from mesa_pipeline.outcomes import QuestionInfo


@dataclass(frozen=True)
class SystemStanding:
    """One system over the split seeds; every spread is the sample standard deviation over seeds.

    Attributes:
        code: Of the system.
        title: Its name in tables.
        kind: What it is.
        score: Mean over the scored questions of each seed; ``None`` where no seed has one.
        tokens: Evidence tokens of a question.
        query_tokens: All that language models read before the answer is there: the system's own prompts, and the evidence.
        calls: Replies of language models before the reader's.
        questions: Test questions, summed over seeds.
        unscored: Those that were asked and have no score.
        unasked: Those that the system was not asked.
        behind: Score of MESA minus the system's, paired by question over all seeds, with its episode-clustered interval;
            ``None`` for MESA itself and where no question has both scores.
        interval: Of the mean score over the questions of all seeds, episodes resampled with all their appearances in them;
            ``None`` where no question has a score.
    """

    code: str
    title: str
    kind: SystemKind
    score: MeanStd | None
    tokens: MeanStd | None
    query_tokens: MeanStd | None
    calls: MeanStd | None
    questions: int
    unscored: int
    unasked: int
    behind: Interval | None = None
    interval: Interval | None = None


def standings_of(
    comparison: Comparison,
    keep: Callable[[QuestionInfo], bool] = lambda question: True,
    settings: EvaluationSettings | None = None,
) -> tuple[SystemStanding, ...]:
    """Every system on the test questions that ``keep`` keeps; with intervals where bootstrap settings are given."""
    kept = [np.array([keep(question) for question in part.questions], dtype=bool) for part in comparison.held_out]
    clusters = np.concatenate(
        [
            np.array([question.episode_id for question in part.questions], dtype=object)[where]
            for part, where in zip(comparison.held_out, kept, strict=True)
        ]
    )
    found = [
        _standing(system, [_kept(seed, where) for seed, where in zip(system.seeds, kept, strict=True)])
        for system in comparison.systems
    ]
    if settings is None:
        return tuple(found)
    scores = [_pooled(system, kept) for system in comparison.systems]
    return tuple(
        replace(
            standing,
            behind=None if standing is found[-1] else _interval(scores[-1] - own, clusters, settings),
            interval=_interval(own, clusters, settings),
        )
        for standing, own in zip(found, scores, strict=True)
    )


def grouped_standings(
    comparison: Comparison, group: Callable[[QuestionInfo], str | None], settings: EvaluationSettings | None = None
) -> Mapping[str, tuple[SystemStanding, ...]]:
    """``standings_of`` each group of test questions, groups by the alphabet; questions without a group are left out."""

    def of_group(name: str) -> tuple[SystemStanding, ...]:
        return standings_of(comparison, lambda question: group(question) == name, settings)

    names = {name for part in comparison.held_out for question in part.questions if (name := group(question)) is not None}
    return {name: of_group(name) for name in sorted(names)}


def _kept(asked: Asked, where: np.ndarray) -> Asked:
    return Asked(asked.scores[where], asked.tokens[where], asked.prompt_tokens[where], asked.calls[where])


def _pooled(system: ComparedSystem, kept: Sequence[np.ndarray]) -> np.ndarray:
    """Scores of the questions kept, seed after seed."""
    return np.concatenate([seed.scores[where] for seed, where in zip(system.seeds, kept, strict=True)])


def _standing(system: ComparedSystem, parts: Sequence[Asked]) -> SystemStanding:
    unasked = sum(int(np.isnan(part.tokens).sum()) for part in parts)
    return SystemStanding(
        code=system.code,
        title=system.title,
        kind=system.kind,
        score=_spread([part.scores for part in parts]),
        tokens=_spread([part.tokens for part in parts]),
        query_tokens=_spread([part.tokens + part.prompt_tokens for part in parts]),
        calls=_spread([part.calls for part in parts]),
        questions=sum(len(part.scores) for part in parts),
        unscored=sum(int(np.isnan(part.scores).sum()) for part in parts) - unasked,
        unasked=unasked,
    )


def _spread(seeds: Sequence[np.ndarray]) -> MeanStd | None:
    """Mean and deviation of the seeds' means; a seed without any value is left out."""
    means = [float(values[~np.isnan(values)].mean()) for values in seeds if not np.isnan(values).all()]
    return mean_and_sample_std(means) if means else None


def _interval(values: np.ndarray, clusters: np.ndarray, settings: EvaluationSettings) -> Interval | None:
    if np.isnan(values).all():
        return None
    return paired_bootstrap(values, clusters, settings.bootstrap_samples, settings.confidence, settings.bootstrap_seed)
