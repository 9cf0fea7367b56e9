"""The report's section on token budgets."""

import csv
import io

import pytest

from mesa_pipeline.evaluation.budget import BudgetCurve, BudgetedPolicy, budget_curves
from mesa_pipeline.policies import FitContext
from mesa_pipeline.policies.values import fit_values
from mesa_pipeline.reports.budget import budget_csv, budget_section
from tests.reports.conftest import fake_matrix


@pytest.fixture(scope="module")
def curves(settings) -> tuple[BudgetCurve, ...]:
    matrix = fake_matrix(episodes=8)
    values = fit_values(matrix, ("domain", "qa_type"), FitContext(1e-6, 20.0, 0))
    return budget_curves([BudgetedPolicy({q.id: 31 for q in matrix.questions}, values)], matrix, True, settings.evaluation)


def test_every_budget_has_a_row_and_a_place_in_the_figure(curves, settings):
    figure, table = budget_section(curves).items
    assert [row.cells[0].order for row in table.rows] == sorted(settings.evaluation.budgets)
    for budget in settings.evaluation.budgets:
        assert f">{budget:,}<" in figure.svg
        assert f"{budget:,} tokens: " in figure.description


def test_equal_curves_give_equal_bytes(curves):
    first, second = (budget_section(curves).items[0].svg for _ in range(2))
    assert first == second


def test_the_series_says_that_no_budget_was_exceeded(curves):
    rows = list(csv.DictReader(io.StringIO(budget_csv(curves))))
    assert len(rows) == len(curves) * len(curves[0].points)
    assert all(float(row["most_tokens"]) <= float(row["budget"]) for row in rows)


def test_without_curves_it_says_why():
    section = budget_section(())
    assert section.items == ()
    assert "expected values" in section.paragraphs[0]
    assert len(budget_csv(()).splitlines()) == 1
