"""The summary that the report shows."""

import dataclasses

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.credit import credit
from mesa_pipeline.evaluation.credit_summary import summarise_credit
from mesa_pipeline.evaluation.evaluate import evaluate_choices
from mesa_pipeline.evaluation.held_out import Receipt, TestResult
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.subsets import FULL_SUBSET


def a_test(matrix: OutcomeMatrix, rows: list[int], mask: int, seed: int = 0) -> TestResult:
    evaluation = evaluate_choices("frozen", "frozen", matrix, np.full(len(matrix), mask), 0.0)
    choices = {matrix.questions[row].id: mask for row in rows}
    return TestResult("d", seed, "frozen", (), choices, evaluation, Receipt("", "", ""))


def test_credit_is_of_all_questions_and_regret_of_those_tested(six_questions, settings) -> None:
    tests = [a_test(six_questions, [0, 1], 1), a_test(six_questions, [0, 4], 2, seed=1)]
    found = summarise_credit(six_questions, tests, settings)
    expected = credit(six_questions, settings.evaluation.empty_score)
    assert found.overall.questions == 6
    assert [value.mean for value in found.overall.shapley] == pytest.approx(expected.shapley.mean(axis=0))
    assert [group.name for group in found.domains] == ["Game", "WEB"]
    assert [group.name for group in found.capabilities] == ["A", "B"]
    assert (found.regret.questions, found.left_out) == (4, 0)
    assert found.regret.rung("frozen policy").score == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    # One structure reaches the 1/2 of all five on every question.
    assert found.enough == (0, 1, 0, 0, 0, 0)


def test_one_domain_and_no_capability_give_no_groups(six_questions, settings) -> None:
    questions = tuple(dataclasses.replace(q, domain="d", qa_type=None) for q in six_questions.questions)
    matrix = OutcomeMatrix(questions, six_questions.scores, six_questions.tokens)
    found = summarise_credit(matrix, [a_test(matrix, [0], FULL_SUBSET)], settings)
    assert (found.domains, found.capabilities) == ((), ())


def test_a_tested_question_that_is_no_longer_there_is_an_error(six_questions, settings) -> None:
    test = a_test(six_questions, [0, 5], 1)
    with pytest.raises(ArtifactError, match="1 tested questions are not in the outcome table"):
        summarise_credit(six_questions.select(np.arange(6) != 5), [test], settings)
