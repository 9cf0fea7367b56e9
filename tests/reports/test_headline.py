from collections.abc import Sequence

import pytest

from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, Comparison, Receipt, TestResult
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports.headline import headline, seeds_table
from mesa_pipeline.reports.standings import standings


def result(seed: int, low: float, mean: float, high: float, clusters: int = 20) -> TestResult:
    """A test in which reading all scores 0.30 for 1,000 tokens, and the frozen policy ``mean`` more for 400."""
    frozen = Evaluation(FROZEN_ROW, "frozen", 50, 0.30 + mean, 400.0, 2.0, 0.0, 0)
    full = Evaluation("all", "all", 50, 0.30, 1000.0, 5.0, 0.0, 0)
    rows = (
        Comparison(frozen, Interval(mean, low, high, 0.95, clusters)),
        Comparison(full, Interval(0.0, 0.0, 0.0, 0.95, clusters)),
    )
    validation = Evaluation("lookup", "lookup", 20, 0.35 + mean, 400.0, 2.0, 0.0, 0)
    return TestResult("made up", seed, "lookup", rows, {}, validation, Receipt("", "", ""))


def verdict(tests: Sequence[TestResult]) -> str:
    return headline(tests, standings(tests)).verdict


def test_a_clear_gain() -> None:
    said = verdict([result(0, 0.01, 0.02, 0.03)])
    assert "scores 32.00 of 100" in said
    assert "against 30.00 for reading all five" in said
    assert "40% of the evidence tokens" in said
    assert "better, by 2.00 (95% interval +1.00 to +3.00, above zero)" in said


def test_an_interval_that_spans_zero_is_said_to() -> None:
    assert "not significant (95% interval −1.00 to +3.00, which spans zero)" in verdict([result(0, -0.01, 0.02, 0.03)])


def test_a_loss_is_called_one() -> None:
    assert "it lost, by 2.00 (95% interval −3.00 to −1.00, below zero)" in verdict([result(0, -0.03, -0.02, -0.01)])


def test_a_single_episode_gives_no_interval() -> None:
    assert "too few episodes to say how certain" in verdict([result(0, 0.02, 0.02, 0.02, clusters=1)])


def test_equal_choices_are_no_result_either_way() -> None:
    assert "the same score on every question" in verdict([result(0, 0.0, 0.0, 0.0)])


def test_seeds_are_averaged_and_counted_one_by_one() -> None:
    tests = [result(0, 0.01, 0.02, 0.03), result(1, -0.01, 0.01, 0.03), result(2, -0.03, -0.03, -0.01)]
    (frozen, _) = standings(tests)
    assert (frozen.difference.mean, frozen.low, frozen.high) == (
        pytest.approx(0.0),
        pytest.approx(-0.01),
        pytest.approx(0.05 / 3),
    )
    assert frozen.difference.std == pytest.approx(0.026457513)  # sample deviation of 2, 1, -3 hundredths
    assert "above zero in 1, spans zero in 1 and lies below zero in 1 of 3 splits" in headline(tests, standings(tests)).notes[0]


def test_the_pooled_interval_is_the_headline_where_there_is_one() -> None:
    tests = [result(0, -0.01, 0.02, 0.05), result(1, -0.01, 0.02, 0.05)]
    top = headline(tests, standings(tests), Interval(0.02, 0.005, 0.035, 0.95, 30))
    assert "better, by 2.00 (95% interval +0.50 to +3.50, above zero)" in top.verdict
    assert "all its appearances" in top.notes[0]
    assert "averaged" in headline(tests, standings(tests)).notes[0]


def test_without_tests_it_says_so() -> None:
    assert "No policy has been tested" in verdict([])


def test_seeds_table_shows_what_validation_overstated() -> None:
    table = seeds_table([result(1, 0.0, 0.02, 0.03), result(0, 0.0, 0.01, 0.03)])
    assert [row.cells[0].text for row in table.rows] == ["0", "1"]
    assert table.rows[0].cells[-1].text == "+5.00"
