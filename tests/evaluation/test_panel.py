import numpy as np
import pytest

from mesa_pipeline.evaluation.panel import MAJORITY, JudgedAnswer, agreements, judge_rows, majority, panel_of

PANEL = panel_of(
    ("strict", "lenient", "absent"),
    [JudgedAnswer(system, f"q{n}", "e") for system in ("mesa", "all") for n in range(2)],
    [[1, 0, 0, 0], [1, 1, 0, 1], [None, None, None, 1]],
)


def test_each_judge_scores_each_system_over_its_own_verdicts():
    rows = {(row.judge, row.system): row for row in judge_rows(PANEL)}
    assert rows["strict", "mesa"].accuracy == 0.5
    assert rows["lenient", "mesa"].accuracy == 1.0
    assert (rows["absent", "mesa"].accuracy, rows["absent", "mesa"].unjudged) == (None, 2)
    assert (rows["absent", "all"].accuracy, rows["absent", "all"].judged) == (1.0, 1)


def test_a_majority_needs_more_than_half_of_those_with_a_verdict():
    assert majority(PANEL.scores).tolist()[0] == 1.0
    assert np.isnan(majority(PANEL.scores)[1])  # one for, one against
    assert majority(PANEL.scores).tolist()[2:] == [0.0, 1.0]
    rows = {(row.judge, row.system): row for row in judge_rows(PANEL)}
    assert (rows[MAJORITY, "mesa"].accuracy, rows[MAJORITY, "mesa"].unjudged) == (1.0, 1)
    assert rows[MAJORITY, "all"].accuracy == 0.5


def test_agreement_and_kappa_by_hand():
    found = {(pair.first, pair.second): pair for pair in agreements(PANEL)}
    pair = found["strict", "lenient"]
    # verdicts 1000 and 1101 agree on 2 of 4; by chance on 1/4 * 3/4 + 3/4 * 1/4
    assert (pair.answers, pair.agreement) == (4, 0.5)
    assert pair.kappa == pytest.approx((0.5 - 0.375) / (1 - 0.375))
    assert found["strict", "absent"].answers == 1


def test_judges_of_one_mind_have_no_kappa():
    (pair,) = agreements(panel_of(("a", "b"), [JudgedAnswer("x", f"q{n}", "e") for n in range(2)], [[1, 1], [1, 1]]))
    assert (pair.agreement, pair.kappa) == (1.0, None)


def test_nothing_in_common():
    (pair,) = agreements(panel_of(("a", "b"), [JudgedAnswer("x", "q", "e")], [[None], [1]]))
    assert (pair.answers, pair.agreement, pair.kappa) == (0, None, None)
