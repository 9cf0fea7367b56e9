"""What two versions of an experiment are compared by: a few figures as a person would say them, and curves, a line a column.

``dvc metrics diff`` and ``dvc plots diff`` show these side by side. The figures for machines are in ``reports.metrics``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.evaluation.budget import FIXED_CURVE, POLICY_CURVE, BudgetCurve
from mesa_pipeline.reports.findings import SubsetFinding
from mesa_pipeline.reports.metrics import csv_text
from mesa_pipeline.reports.search_findings import INITIAL, SearchFinding

BUDGET_COLUMNS = ("budget", POLICY_CURVE, f"the {FIXED_CURVE}")
SEARCH_COLUMNS = ("iteration", "best so far", "start (all five structures)")
"""DVC draws the column that comes first by name as a solid line."""
SUBSET_COLUMNS = ("structures", "score", "tokens")


@dataclass(frozen=True)
class Shown:
    """How a metric is shown: under which name, times what, and with how many decimals."""

    name: str
    times: int
    decimals: int


HEADLINE = {
    "frozen_score": Shown("score", 100, 2),
    "all_score": Shown("score_all_five", 100, 2),
    "swept_best_subset_score": Shown("score_best_subset", 100, 2),
    "random_score": Shown("score_random", 100, 2),
    "oracle_score": Shown("score_oracle", 100, 2),
    "difference_mean": Shown("gain_over_all_five", 100, 2),
    "difference_low": Shown("gain_over_all_five_low", 100, 2),
    "difference_high": Shown("gain_over_all_five_high", 100, 2),
    "frozen_tokens": Shown("tokens", 1, 0),
    "all_tokens": Shown("tokens_all_five", 1, 0),
    "token_share": Shown("tokens_percent", 100, 1),
    "questions": Shown("questions", 1, 0),
    "unscored_outcomes": Shown("unscored_outcomes", 1, 0),
    "failures": Shown("failures", 1, 0),
}


def headline_metrics(metrics: Mapping[str, float]) -> dict[str, float | int]:
    """The figures a change is judged by, rounded: scores times a hundred, tokens of a question; those unknown are absent."""
    return {
        shown.name: round(shown.times * metrics[name], shown.decimals or None)
        for name, shown in HEADLINE.items()
        if name in metrics
    }


def budget_curve_csv(curves: Sequence[BudgetCurve]) -> str:
    """Score x100 within each budget of evidence tokens: the frozen policy beside the best fixed subset that fits."""
    scores = {curve.name: [100 * point.score.mean for point in curve.points] for curve in curves}
    budgets = [float(point.budget) for point in curves[0].points] if curves else []
    lines = zip(budgets, scores[POLICY_CURVE], scores[FIXED_CURVE], strict=True) if curves else ()
    return csv_text(BUDGET_COLUMNS, list(lines))


def subset_points_csv(findings: Sequence[SubsetFinding]) -> str:
    """Score x100 and evidence tokens of a question for each of the 31 subsets."""
    return csv_text(SUBSET_COLUMNS, [(subsets.label(f.mask), 100 * f.score, f.tokens) for f in findings])


def search_curve_csv(searches: Sequence[SearchFinding]) -> str:
    """Validation objective x100 of the best candidate so far after each iteration, mean over the split seeds."""
    if not searches:
        return csv_text(SEARCH_COLUMNS, [])
    last = max(candidate.iteration for search in searches for candidate in search.candidates)
    best = 100 * np.mean([_best_by_iteration(search, last) for search in searches], axis=0)
    return csv_text(SEARCH_COLUMNS, [(iteration, float(value), float(best[0])) for iteration, value in enumerate(best)])


def _best_by_iteration(search: SearchFinding, last: int) -> np.ndarray:
    """Highest objective up to each iteration, shape ``(last + 1,)``; first that of the policy every search starts with."""
    best = np.full(last + 1, -np.inf)
    for candidate in search.candidates:
        if candidate.worth is not None and (candidate.status == "evaluated" or candidate.id == INITIAL):
            best[candidate.iteration] = max(best[candidate.iteration], candidate.worth.objective)
    return np.maximum.accumulate(best)
