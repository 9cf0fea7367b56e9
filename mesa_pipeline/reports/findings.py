"""What the outcome table says of the subsets: means, ranks, the Pareto front and winners by group."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.config import EvaluationSettings
from mesa_pipeline.evaluation.statistics import Interval, paired_bootstrap
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo

SCORE_TOLERANCE = 1e-9
BEST_SUBSETS = 6
OPTIMISM = "The best of 31 is chosen and measured on the same questions, so its score is optimistic."


@dataclass(frozen=True)
class SubsetFinding:
    """One subset over some questions.

    Attributes:
        mask: The subset.
        score: Mean over its scored questions; NaN where there are none.
        tokens: Mean evidence tokens; NaN where nothing was composed.
        scored: Number of questions with a score.
        unscored: Number of questions without.
        rank: 1 for the highest score; equal scores share a rank; 0 where there is no score.
        on_front: Whether no other subset scores at least as well for at most as many tokens, and one of the two better.
    """

    mask: int
    score: float
    tokens: float
    scored: int
    unscored: int
    rank: int
    on_front: bool


@dataclass(frozen=True)
class GroupFinding:
    """What the 31 subsets are worth on one group of questions.

    Attributes:
        name: The group's value, such as a domain.
        questions: Number of questions.
        episodes: Number of episodes they come from.
        scores: Shape ``(31,)``: mean score of each subset; NaN where unscored.
        best: The best few with a score, best first, and the full one; of equal scores the one with fewest tokens, then fewest
            structures, comes first.
        intervals: Mean score of each of ``best`` with its episode-clustered interval.
        tied: How many other subsets reach the score of the first.
        margin: Paired difference of the first to the full subset with its interval, over questions scored under both; ``None``
            where there are none.
    """

    name: str
    questions: int
    episodes: int
    scores: np.ndarray
    best: tuple[int, ...]
    intervals: Mapping[int, Interval]
    tied: int
    margin: Interval | None

    @property
    def winner(self) -> int:
        return self.best[0]

    @property
    def winning_score(self) -> float:
        return float(self.scores[self.winner - 1])

    @property
    def full_score(self) -> float:
        return float(self.scores[subsets.FULL_SUBSET - 1])


def column_means(values: np.ndarray) -> np.ndarray:
    """Means over the first axis that leave NaN out; shape ``(n, k)`` to ``(k,)``, NaN where a column holds nothing else."""
    present = ~np.isnan(values)
    counts = present.sum(axis=0)
    sums = np.where(present, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def subset_findings(matrix: OutcomeMatrix) -> tuple[SubsetFinding, ...]:
    """The 31 subsets over all questions of a matrix, best first."""
    return mean_subset_findings([matrix])


def mean_subset_findings(parts: Sequence[OutcomeMatrix]) -> tuple[SubsetFinding, ...]:
    """The 31 subsets, best first, each mean taken within every part and then over the parts (test sets of several seeds)."""
    scores = column_means(np.array([column_means(part.scores) for part in parts]))
    tokens = column_means(np.array([column_means(part.tokens) for part in parts]))
    scored = sum((~np.isnan(part.scores)).sum(axis=0) for part in parts)
    questions = sum(len(part) for part in parts)
    ranks, front = competition_ranks(scores), pareto_front(scores, tokens)
    return tuple(
        SubsetFinding(
            mask=mask,
            score=float(scores[mask - 1]),
            tokens=float(tokens[mask - 1]),
            scored=int(scored[mask - 1]),
            unscored=int(questions - scored[mask - 1]),
            rank=int(ranks[mask - 1]),
            on_front=mask in front,
        )
        for mask in order_by_worth(scores, tokens)
    )


def order_by_worth(scores: np.ndarray, tokens: np.ndarray) -> tuple[int, ...]:
    """Masks by falling score, then rising tokens, then number of structures; unscored ones last.

    Args:
        scores: Shape ``(31,)``.
        tokens: Shape ``(31,)``.
    """

    def worth(mask: int) -> tuple[float, float, int, int]:
        score = np.nan_to_num(scores[mask - 1], nan=-np.inf)
        return -_rounded(float(score)), float(np.nan_to_num(tokens[mask - 1], nan=np.inf)), subsets.size(mask), mask

    return tuple(sorted(subsets.ALL_SUBSETS, key=worth))


def competition_ranks(scores: np.ndarray) -> np.ndarray:
    """Rank of each score, 1 the highest; equal scores share the better rank ("1 2 2 4"), NaN gets 0. Shape is kept."""
    rounded = [_rounded(float(value)) for value in scores]
    return np.array([0 if np.isnan(value) else 1 + sum(other > value for other in rounded) for value in rounded])


def pareto_front(scores: np.ndarray, tokens: np.ndarray) -> frozenset[int]:
    """Masks no other subset dominates: at least the score for at most the tokens, and one of the two strictly better.

    Args:
        scores: Shape ``(31,)``; a NaN is on no front and dominates nothing.
        tokens: Shape ``(31,)``.
    """
    points = {
        mask: (_rounded(float(scores[mask - 1])), float(tokens[mask - 1]))
        for mask in subsets.ALL_SUBSETS
        if not np.isnan(scores[mask - 1]) and not np.isnan(tokens[mask - 1])
    }

    def dominated(point: tuple[float, float]) -> bool:
        return any(s >= point[0] and t <= point[1] and (s, t) != point for s, t in points.values())

    return frozenset(mask for mask, point in points.items() if not dominated(point))


def group_findings(
    matrix: OutcomeMatrix, group: Callable[[QuestionInfo], str | None], settings: EvaluationSettings
) -> tuple[GroupFinding, ...]:
    """The best subsets of each group, groups in alphabetical order; questions whose group is ``None`` and groups without any
    score are left out.

    Args:
        matrix: Outcomes of the questions.
        group: What a question belongs to.
        settings: Of the bootstrap.
    """
    rows: dict[str, list[int]] = defaultdict(list)
    for row, question in enumerate(matrix.questions):
        name = group(question)
        if name is not None:
            rows[name].append(row)
    parts = {name: matrix.select(np.isin(np.arange(len(matrix)), rows[name])) for name in sorted(rows)}
    return tuple(
        _group_finding(name, part, settings) for name, part in parts.items() if not np.isnan(column_means(part.scores)).all()
    )


def _group_finding(name: str, part: OutcomeMatrix, settings: EvaluationSettings) -> GroupFinding:
    scores = column_means(part.scores)
    ranked = [mask for mask in order_by_worth(scores, column_means(part.tokens)) if not np.isnan(scores[mask - 1])]
    best = tuple(dict.fromkeys([*ranked[:BEST_SUBSETS], *(mask for mask in ranked if mask == subsets.FULL_SUBSET)]))
    margins = part.scores[:, best[0] - 1] - part.scores[:, subsets.FULL_SUBSET - 1]
    return GroupFinding(
        name=name,
        questions=len(part),
        episodes=len(set(part.episode_ids)),
        scores=scores,
        best=best,
        intervals={mask: _interval(part.scores[:, mask - 1], part, settings) for mask in best},
        tied=sum(_rounded(float(value)) == _rounded(float(scores[best[0] - 1])) for value in scores) - 1,
        margin=None if np.isnan(margins).all() else _interval(margins, part, settings),
    )


def _interval(values: np.ndarray, part: OutcomeMatrix, settings: EvaluationSettings) -> Interval:
    """Mean of one value a question, some of which may be NaN, with its episode-clustered interval."""
    samples, confidence, seed = settings.bootstrap_samples, settings.confidence, settings.bootstrap_seed
    return paired_bootstrap(values, part.episode_ids, samples, confidence, seed)


def _rounded(score: float) -> float:
    """Sums in another order differ in the last bits; equal scores must compare equal."""
    return round(score / SCORE_TOLERANCE) * SCORE_TOLERANCE if np.isfinite(score) else score
