"""Eq. 9 against numbers worked by hand."""

import math

import pytest

from mesa_pipeline.config import UcbSettings
from mesa_pipeline.search.records import ArmStatistics
from mesa_pipeline.search.ucb import arm_statistics, bonus_to_spread, exploited_arm, explored_arm


def ucb_settings(beta: float = 0.08, scale: str = "unit", reward: str = "mean") -> UcbSettings:
    return UcbSettings.model_validate({"beta": beta, "scale": scale, "reward": reward})


def statistics(objectives, frontier=0.5, settings=None, invalid=None, duplicates=None) -> dict[str, ArmStatistics]:
    arms = arm_statistics(objectives, frontier, settings or ucb_settings(), invalid or {}, duplicates or {})
    assert [arm.direction for arm in arms] == list(objectives)
    return {arm.direction: arm for arm in arms}


def arm(direction: str, value: float, pulls: int = 1, bonus: float = 0.0) -> ArmStatistics:
    return ArmStatistics(direction, pulls, value, bonus)


def test_the_index_by_hand():
    """Three pulls in all, so ln 5 = 1.6094379; a has two of them, b one, c none.

    a: mean 0.3, 0.08 sqrt(1.6094379 / 3) = 0.0585958. b: 0.08 sqrt(1.6094379 / 2) = 0.0717649.
    c: 0.08 sqrt(1.6094379) = 0.1014909.
    """
    arms = statistics({"a": [0.25, 0.35], "b": [0.3], "c": []}, frontier=0.4)
    assert arms["a"].value == pytest.approx(0.3)
    assert arms["a"].bonus == pytest.approx(0.0585958, abs=1e-7)
    assert arms["b"].bonus == pytest.approx(0.0717649, abs=1e-7)
    assert arms["c"].bonus == pytest.approx(0.1014909, abs=1e-7)
    assert arms["a"].ucb == pytest.approx(0.3585958, abs=1e-7)
    assert [arm.pulls for arm in arms.values()] == [2, 1, 0]


def test_an_unvisited_arm_is_worth_the_frontier_and_not_zero():
    arms = statistics({"a": [0.1], "b": []}, frontier=0.637)
    assert arms["b"].value == 0.637


def test_before_any_pull_every_arm_has_the_same_index():
    arms = statistics({"a": [], "b": []}, frontier=0.6)
    assert arms["a"].ucb == arms["b"].ucb == pytest.approx(0.6 + 0.08 * math.sqrt(math.log(2)))


def test_without_beta_the_index_is_the_value():
    arms = statistics({"a": [0.1, 0.2], "b": []}, frontier=0.4, settings=ucb_settings(beta=0.0))
    assert [arm.ucb for arm in arms.values()] == pytest.approx([0.15, 0.4])


def test_an_arm_may_be_worth_its_best_candidate():
    arms = statistics({"a": [0.1, 0.5], "b": [0.4]}, settings=ucb_settings(reward="max"))
    assert [arm.value for arm in arms.values()] == [0.5, 0.4]


def test_the_bonus_may_follow_the_spread_of_the_values():
    """Values 0.3 and 0.34 spread over 0.04; with two pulls in all the bonus of each is 0.04 x 0.08 sqrt(ln 4 / 2)."""
    arms = statistics({"a": [0.3], "b": [0.34]}, settings=ucb_settings(scale="range"))
    assert arms["a"].bonus == pytest.approx(0.04 * 0.08 * math.sqrt(math.log(4) / 2))


def test_without_a_spread_the_bonus_is_as_in_the_paper():
    by_spread = statistics({"a": [0.3], "b": [0.3]}, settings=ucb_settings(scale="range"))
    assert by_spread == statistics({"a": [0.3], "b": [0.3]})


def test_invalid_and_repeated_candidates_are_counted_and_are_no_pulls():
    arms = statistics({"a": [0.3], "b": []}, invalid={"b": 4}, duplicates={"a": 2})
    assert (arms["b"].invalid, arms["b"].duplicates, arms["b"].pulls) == (4, 0, 0)
    assert (arms["a"].invalid, arms["a"].duplicates, arms["a"].pulls) == (0, 2, 1)
    assert arms["a"].bonus == statistics({"a": [0.3], "b": []})["a"].bonus


def test_the_order_of_candidates_does_not_matter():
    forward = statistics({"a": [0.1, 0.2, 0.3], "b": [0.7]})
    assert forward == statistics({"a": [0.3, 0.2, 0.1], "b": [0.7]})


def test_exploit_takes_the_visited_arm_of_highest_value():
    assert exploited_arm([arm("a", 0.3), arm("b", 0.4), arm("c", 0.9, pulls=0)]) == "b"


def test_exploit_before_any_visit_takes_the_first_arm():
    assert exploited_arm([arm("a", 0.5, 0), arm("b", 0.5, 0)]) == "a"


def test_explore_takes_the_highest_index_outside_those_avoided():
    arms = [arm("a", 0.3, bonus=0.3), arm("b", 0.5, bonus=0.05), arm("c", 0.1, bonus=0.1)]
    assert explored_arm(arms) == "a"
    assert explored_arm(arms, "a") == "b"
    assert explored_arm(arms, "a", ["b"]) == "c"
    assert explored_arm(arms, "a", ["b", "c"]) == "a"
    assert explored_arm(arms, "a", ["a", "b", "c"]) == "a"
    assert explored_arm(arms[1:], "c", ["b"]) == "c"


@pytest.mark.parametrize("choose", [exploited_arm, explored_arm])
def test_ties_go_to_fewer_pulls_then_to_the_first(choose):
    assert choose([arm("a", 0.4, 3), arm("b", 0.4, 2), arm("c", 0.4, 2)]) == "b"


def test_how_far_the_schedule_is_from_round_robin():
    """Mean bonus 0.03 over a spread of 0.02."""
    assert bonus_to_spread([arm("a", 0.30, bonus=0.02), arm("b", 0.32, bonus=0.04)]) == pytest.approx(1.5)
    assert bonus_to_spread([arm("a", 0.3), arm("b", 0.3)]) is None
    assert bonus_to_spread([arm("a", 0.3), arm("b", 0.9, pulls=0)]) is None
    assert bonus_to_spread([]) is None
