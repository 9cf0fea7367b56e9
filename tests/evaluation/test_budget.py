"""Score within budgets, by hand and against the definition."""

import numpy as np
import pytest

from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.budget import (
    FIXED_CURVE,
    MOST_CURVE,
    POLICY_CURVE,
    SINGLE_CURVE,
    BudgetedPolicy,
    budget_curves,
)
from mesa_pipeline.policies import FitContext
from mesa_pipeline.policies.values import ValueModel, fit_values
from mesa_pipeline.subsets import FULL_SUBSET

S, T = 0b00001, 0b00010


@pytest.fixture
def evaluation(small_settings):
    return small_settings.evaluation.model_copy(update={"budgets": (4999, 1000, 999, 5000)})


def curves_of(matrix, choices, values, evaluation, labels=True):
    policy = BudgetedPolicy(dict(zip([q.id for q in matrix.questions], choices, strict=True)), values)
    return {curve.name: curve for curve in budget_curves([policy], matrix, labels, evaluation)}


def test_the_curves_by_hand(six_questions, evaluation):
    """A subset of k structures has 1000 k tokens. On Game S scores 2/3 and T 1/6, on WEB T 5/6 and S 0; all five 1/2."""
    values = fit_values(six_questions, ("domain",), FitContext(0.0, 0.0, 0))
    found = curves_of(six_questions, [FULL_SUBSET] * 6, values, evaluation)
    policy = found[POLICY_CURVE].points
    assert [point.budget for point in policy] == [999, 1000, 4999, 5000]
    assert [point.score.mean for point in policy] == pytest.approx([0.0, 0.75, 0.75, 0.5])
    assert [point.tokens for point in policy] == [0, 1000, 1000, 5000]
    assert [point.fitting for point in policy] == [0, 1, 1, 1]
    assert [point.score.mean for point in found[FIXED_CURVE].points] == pytest.approx([0.0, 0.5, 0.5, 0.5])  # T
    assert [point.score.mean for point in found[SINGLE_CURVE].points] == pytest.approx([0.0, 0.5, 0.5, 0.5])
    assert [point.score.mean for point in found[MOST_CURVE].points] == pytest.approx([0.0, 1 / 3, 0.2, 0.5])
    assert policy[1].versus_fixed.mean == pytest.approx(0.25)


def test_without_labels_the_policy_falls_back_on_the_best_of_all(six_questions, evaluation):
    values = fit_values(six_questions, ("domain",), FitContext(0.0, 0.0, 0))
    found = curves_of(six_questions, [FULL_SUBSET] * 6, values, evaluation, labels=False)
    assert found[POLICY_CURVE].points[1].score.mean == pytest.approx(0.5)
    assert found[POLICY_CURVE].points[1].versus_fixed.mean == 0.0


def test_no_question_of_any_system_exceeds_the_budget(make_matrix, evaluation):
    rng = np.random.default_rng(3)
    scores = rng.random((40, 31))
    scores[rng.random((40, 31)) < 0.1] = np.nan
    matrix = make_matrix([(f"e{k % 7}", "", None) for k in range(40)], scores, rng.integers(0, 9000, (40, 31)))
    values = ValueModel(1e-6, (), {}, {dump_json([]): rng.random(31).tolist()})
    for curve in curves_of(matrix, rng.integers(1, 32, 40).tolist(), values, evaluation).values():
        assert all(point.most_tokens <= point.budget for point in curve.points)


def test_a_tested_question_that_is_not_in_the_table_is_an_error(six_questions, evaluation):
    values = fit_values(six_questions, (), FitContext(0.0, 0.0, 0))
    with pytest.raises(ArtifactError, match="mesa sweep"):
        budget_curves([BudgetedPolicy({"elsewhere#0": S}, values)], six_questions, True, evaluation)
