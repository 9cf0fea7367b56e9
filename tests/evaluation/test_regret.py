"""Regret and its decomposition."""

import dataclasses

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.evaluate import oracle
from mesa_pipeline.evaluation.regret import decompose_regret, hindsight_choices, regrets
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.subsets import FULL_SUBSET

ORACLE = "best subset of each question (oracle)"


def test_regret_worked_by_hand(six_questions) -> None:
    # All five score 1/2 for 5,000 tokens; S alone scores 1 on the first question and T alone on the fourth for 1,000 each. On
    # the second and sixth one structure also scores 1/2, so that the tokens alone are lost.
    lost = regrets(six_questions, np.full(6, FULL_SUBSET), 1e-6)
    np.testing.assert_allclose(lost, [0.504, 0.004, 0.004, 0.504, 0.504, 0.004])


def test_no_regret_without_all_scores(six_questions) -> None:
    six_questions.scores[2, 9] = np.nan
    assert np.isnan(regrets(six_questions, np.full(6, FULL_SUBSET), 0.0)).tolist() == [False, False, True] + [False] * 3


def test_hindsight_by_cell(six_questions) -> None:
    choices = hindsight_choices(six_questions, 0.0, lambda question: question.domain)
    np.testing.assert_array_equal(choices, [1, 1, 1, 2, 2, 2])


def as_tested(matrix, masks) -> dict[str, list[int]]:
    return {question.id: [mask] for question, mask in zip(matrix.questions, masks, strict=True)}


def test_decomposition_from_all_to_the_oracle(six_questions, settings) -> None:
    lambda_ = settings.search.lambda_
    found = decompose_regret(six_questions, as_tested(six_questions, [1] * 6), settings)
    assert (found.questions, found.left_out) == (6, 0)
    gains = {rung.name: rung.gain.mean for rung in found.rungs}
    assert gains["all five"] == 0
    assert gains["frozen policy"] == pytest.approx(2 / 6 - 0.5 + 4000 * lambda_)
    assert gains["best subset of each domain and capability"] <= gains[ORACLE] + 1e-12
    expected = oracle(six_questions, lambda_).objective - (0.5 - 5000 * lambda_)
    assert gains[ORACLE] == pytest.approx(expected)
    assert gains[ORACLE] == pytest.approx(regrets(six_questions, np.full(6, FULL_SUBSET), lambda_).mean())
    assert found.rung(ORACLE).kind == "hindsight"
    with pytest.raises(KeyError):
        found.rung("nobody")


def test_regret_by_domain_and_capability_by_hand(six_questions, settings) -> None:
    """At no price, what the highest of a question's 31 scores is ahead of that of S, and of that of all five."""
    free = settings.model_copy(update={"search": settings.search.model_copy(update={"lambda_": 0.0})})
    found = decompose_regret(six_questions, as_tested(six_questions, [1] * 6), free).groups
    scores, best = six_questions.scores, six_questions.scores.max(axis=1)
    for group in found:
        field = {"domain": "domain", "capability": "qa_type"}[group.kind]
        inside = [k for k, question in enumerate(six_questions.questions) if getattr(question, field) == group.name]
        assert group.questions == len(inside)
        assert group.policy == pytest.approx(np.mean([best[k] - scores[k, 0] for k in inside]))
        assert group.everything == pytest.approx(np.mean([best[k] - scores[k, 30] for k in inside]))
    assert [(group.kind, group.name) for group in found] == [
        ("domain", "Game"),
        ("domain", "WEB"),
        ("capability", "A"),
        ("capability", "B"),
    ]


def test_one_group_or_none_is_not_told(six_questions, settings) -> None:
    questions = tuple(dataclasses.replace(question, domain="d", qa_type=None) for question in six_questions.questions)
    matrix = OutcomeMatrix(questions, six_questions.scores, six_questions.tokens)
    assert decompose_regret(matrix, as_tested(matrix, [1] * 6), settings).groups == ()


def test_a_question_counts_as_often_as_it_was_tested(six_questions, settings) -> None:
    first, second, *_ = (question.id for question in six_questions.questions)
    found = decompose_regret(six_questions, {first: [1, 1, 2], second: [31]}, settings)
    assert found.questions == 4
    assert found.rung("frozen policy").score == pytest.approx((1 + 1 + 0 + 0.5) / 4)
    assert found.rung(ORACLE).score == pytest.approx((1 + 1 + 1 + 0.5) / 4)


def test_one_episode_has_nothing_held_out(six_questions, settings) -> None:
    alone = six_questions.select(np.array([True, True, False, False, False, False]))
    kinds = {rung.kind for rung in decompose_regret(alone, as_tested(alone, [1, 2]), settings).rungs}
    assert kinds == {"all", "policy", "hindsight"}


def test_unscored_questions_are_left_out_and_counted(six_questions, settings) -> None:
    six_questions.scores[3, 5] = np.nan
    masks = [1, 2, 4, 8, 16, 31]
    found = decompose_regret(six_questions, as_tested(six_questions, masks), settings)
    assert (found.questions, found.left_out) == (5, 1)
    rest = six_questions.select(np.arange(6) != 3)
    assert found.rungs == decompose_regret(rest, as_tested(rest, masks[:3] + masks[4:]), settings).rungs
    six_questions.scores[:, 5] = np.nan
    with pytest.raises(ArtifactError, match="none of 6 questions"):
        decompose_regret(six_questions, as_tested(six_questions, masks), settings)
