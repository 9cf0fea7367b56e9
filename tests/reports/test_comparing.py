"""What two versions of an experiment are compared by."""

import csv
import io

import pytest

from mesa_pipeline.evaluation.budget import FIXED_CURVE, MOST_CURVE, POLICY_CURVE, BudgetCurve, BudgetPoint
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports.comparing import budget_curve_csv, headline_metrics, search_curve_csv, subset_points_csv
from mesa_pipeline.reports.findings import subset_findings
from tests.reports.conftest import fake_matrix
from tests.reports.test_search import search


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_figures_are_rounded_as_a_person_says_them_and_those_unknown_are_absent():
    shown = headline_metrics(
        {"frozen_score": 0.228572, "frozen_tokens": 5721.95, "token_share": 0.318261, "prefill_share": 0.2}
    )
    assert shown == {"score": 22.86, "tokens": 5722, "tokens_percent": 31.8}
    assert isinstance(shown["tokens"], int)


def test_the_best_so_far_is_the_mean_over_the_searches_and_counts_what_was_evaluated():
    found = rows(search_curve_csv([search(0), search(1)]))
    assert [float(row["best so far"]) for row in found] == pytest.approx([20.0, 22.0, 23.0])
    assert {float(row["start (all five structures)"]) for row in found} == {20.0}
    assert [row["iteration"] for row in found] == ["0", "1", "2"]
    assert rows(search_curve_csv([])) == []


def test_a_budget_has_a_line_with_the_policy_beside_the_best_fixed_subset():
    def curve(name: str, score: float) -> BudgetCurve:
        interval = Interval(score, 0.0, 1.0, 0.95, 3)
        return BudgetCurve(name, tuple(BudgetPoint(budget, interval, interval, 1.0, 1.0, 1.0) for budget in (250, 500)))

    found = rows(budget_curve_csv([curve(MOST_CURVE, 0.1), curve(FIXED_CURVE, 0.2), curve(POLICY_CURVE, 0.3)]))
    assert [float(row["budget"]) for row in found] == [250, 500]
    assert [(float(row[POLICY_CURVE]), float(row[f"the {FIXED_CURVE}"])) for row in found] == [(30, 20), (30, 20)]
    assert rows(budget_curve_csv([])) == []


def test_every_subset_is_a_point():
    findings = subset_findings(fake_matrix(episodes=4))
    found = rows(subset_points_csv(findings))
    assert len({row["structures"] for row in found}) == 31
    best = next(row for row in found if row["structures"] == "S+T+G+V+R")
    full = next(finding for finding in findings if finding.mask == 31)
    assert float(best["score"]) == pytest.approx(100 * full.score)
    assert float(best["tokens"]) == pytest.approx(full.tokens)
