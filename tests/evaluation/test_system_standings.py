"""How systems stand, against figures worked by hand on six questions."""

import pytest

from mesa_pipeline.evaluation.compared_systems import compare_systems
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.evaluation.system_standings import grouped_standings, standings_of
from tests.evaluation.comparisons import looping, named, two_tests


def test_scores_tokens_and_counts_by_hand(six_questions, settings):
    comparison = compare_systems(two_tests(), six_questions, [looping()])
    assert [part.seed for part in comparison.held_out] == [0, 1]
    found = named(standings_of(comparison, settings=settings.evaluation))
    assert list(found) == ["loop", "S", "T", "G", "V", "R", "random", "all", "oracle", FROZEN_ROW]
    mesa = found[FROZEN_ROW]
    assert mesa.score == pytest.approx((0.875, 0.125 * 2**0.5, 2))  # 3/4 and 1
    assert mesa.tokens == pytest.approx((2000.0, 1000 * 2**0.5, 2))  # (1000 + 5000) / 2 and 1000
    assert (mesa.questions, mesa.unscored, mesa.unasked, mesa.behind) == (4, 0, 0, None)
    loop = found["loop"]
    assert loop.score == pytest.approx((1.0, 0.0, 2))
    assert loop.tokens.mean == pytest.approx((200 + 300) / 2)
    assert loop.query_tokens.mean == pytest.approx(((1300 + 100) / 2 + 1300) / 2)
    assert loop.calls.mean == pytest.approx((1 + 2) / 2)
    assert (loop.questions, loop.unscored, loop.unasked) == (4, 1, 1)
    assert loop.behind.mean == pytest.approx((-0.5 + 0) / 2)  # w1#3 twice: the only question with both scores
    assert loop.behind.clusters == 1
    assert found["S"].behind.mean == pytest.approx((0 + 0.5 + 1 + 1) / 4)
    means = six_questions.scores.mean(axis=1)
    assert found["random"].score.mean == pytest.approx(((means[0] + means[3]) / 2 + (means[3] + means[4]) / 2) / 2)


def test_a_score_has_the_interval_of_the_questions_of_all_seeds(six_questions, settings):
    """MESA scores 1, 1/2, 1 and 1 on g1 and, three times, w1: resamples of the two hold g1 alone, w1 alone, or both."""
    comparison = compare_systems(two_tests(), six_questions, [looping()])
    mesa = named(standings_of(comparison, settings=settings.evaluation))[FROZEN_ROW]
    assert (mesa.interval.low, mesa.interval.mean, mesa.interval.high) == pytest.approx((2.5 / 3, 3.5 / 4, 1.0))
    assert mesa.interval.clusters == 2
    groups = grouped_standings(comparison, lambda question: question.domain, settings.evaluation)
    game = named(groups["Game"])
    assert game["loop"].interval is None, "unscored"
    assert game["S"].behind.clusters == 1
    assert named(standings_of(comparison))[FROZEN_ROW].interval is None


def test_groups_hold_their_own_questions(six_questions):
    comparison = compare_systems(two_tests(), six_questions, [looping()])
    groups = grouped_standings(comparison, lambda question: question.domain)
    assert list(groups) == ["Game", "WEB"]
    game, web = (named(groups[name]) for name in groups)
    assert game[FROZEN_ROW].score == (1.0, None, 1)  # one seed tests a question of Game
    assert game["loop"].score is None
    assert (game["loop"].questions, game["loop"].unscored) == (1, 1)
    assert web[FROZEN_ROW].score.mean == pytest.approx((0.5 + 1) / 2)
    assert web["loop"].unasked == 1
