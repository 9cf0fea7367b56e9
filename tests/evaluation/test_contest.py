"""Who reigns: decisions worked by hand, and what many nights of luck come to."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.config import load_settings
from mesa_pipeline.evaluation.contest import Contest, confidence_of, contest, first_contest
from mesa_pipeline.evaluation.showing import Showing

PARAMS = Path(__file__).resolve().parents[2] / "params.yaml"
RULE = load_settings(PARAMS, environment={}).nightly.model_copy(update={"confidence": 0.95, "min_episodes": 4, "growth": 0.5})
FREE = 0.0


def showing(scores: list[float], tokens: float = 0.0) -> Showing:
    """One question an episode."""
    n = len(scores)
    ids = np.array([f"e{k:02d}" for k in range(n)], dtype=object)
    return Showing(ids, ids, np.array(["d"] * n, dtype=object), np.array(scores, dtype=float), np.full(n, tokens))


def decided(challenger: Showing, champion: Showing, earlier: list[Contest] | None = None, lambda_: float = FREE) -> Contest:
    return contest(challenger, champion, lambda_, "as it is", earlier or [], RULE)


def test_the_shares_of_what_may_go_wrong_add_up_to_all_of_it():
    shares = [1 - confidence_of(0.95, number) for number in range(1, 2001)]
    assert shares[0] == pytest.approx(0.05 / 2)
    assert sum(shares) == pytest.approx(0.05 * (1 - 1 / 2001))


def test_a_challenger_is_promoted_when_the_interval_lies_above_zero():
    """Differences 0.1, 0.2, 0.3, 0.2: mean 0.2, standard error 0.0408, t(3) at 98.75% is 4.1765: 0.0295 to 0.3705."""
    found = decided(showing([0.6, 0.7, 0.8, 0.7]), showing([0.5] * 4))
    assert (found.decision, found.number, found.episodes, found.questions) == ("promoted", 1, 4, 4)
    assert found.difference is not None
    assert found.difference.confidence == pytest.approx(0.975)
    assert (found.difference.low, found.difference.high) == pytest.approx((0.0295, 0.3705), abs=1e-4)


def test_the_same_difference_is_not_enough_after_other_comparisons():
    """As the third comparison the level is 1 - 0.05 / 12: t(3) is 8.1: from -0.13 on."""
    earlier = [decided(showing([0.5, 0.6, 0.5, 0.5]), showing([0.5] * 4))] * 2
    found = contest(showing([0.6, 0.7, 0.8, 0.7]), showing([0.5] * 4), FREE, "other models", earlier, RULE)
    assert (found.decision, found.number) == ("kept", 3)
    assert found.difference is not None
    assert found.difference.low < 0 < found.difference.high


def test_a_challenger_not_shown_to_be_better_does_not_take_over():
    found = decided(showing([0.9, 0.1, 0.9, 0.2]), showing([0.5] * 4))
    assert found.decision == "kept"
    assert "+2.50 (97.5% interval −" in found.reason
    assert "-" not in found.reason


def test_a_worse_challenger_does_not_take_over():
    assert decided(showing([0.2, 0.3, 0.2, 0.3]), showing([0.5] * 4)).decision == "kept"


def test_tokens_are_priced_as_the_search_prices_them():
    champion, frugal = showing([0.5, 0.6, 0.5, 0.6], tokens=10_000), showing([0.5, 0.6, 0.51, 0.59], tokens=1_000)
    assert decided(frugal, champion, lambda_=1e-5).decision == "promoted"
    assert decided(frugal, champion).decision == "kept"


def test_on_too_few_episodes_nothing_is_promoted():
    found = decided(showing([1.0] * 3), showing([0.0] * 3))
    assert (found.decision, found.number, found.difference) == ("too few", 0, None)
    assert "nightly.min_episodes: 4" in found.reason


def test_an_episode_without_a_score_on_both_sides_does_not_count():
    found = decided(showing([1.0, 1.0, 1.0, np.nan]), showing([0.0] * 4))
    assert (found.decision, found.episodes) == ("too few", 3)


def test_equal_choices_are_not_compared():
    found = decided(showing([0.5, np.nan, 0.5, 0.6, 0.7]), showing([0.5, np.nan, 0.5, 0.6, 0.7]))
    assert (found.decision, found.number, found.is_counted) == ("same choices", 0, False)


def test_the_same_choices_with_the_same_outcomes_are_compared_once():
    challenger, champion = showing([0.5, 0.6, 0.5, 0.5]), showing([0.5] * 4)
    earlier = [decided(challenger, champion)]
    again = contest(challenger, champion, FREE, "other models", earlier, RULE)
    assert (again.decision, again.number) == ("compared before", 1)


def test_under_the_same_settings_another_comparison_waits_for_more_episodes():
    earlier = [decided(showing([0.5, 0.6, 0.5, 0.5]), showing([0.5] * 4))]
    assert decided(showing([0.9] * 5), showing([0.5] * 5), earlier).decision == "waiting"
    assert decided(showing([0.9, 0.8] * 3), showing([0.5] * 6), earlier).decision == "promoted"


def test_the_first_champion_is_the_challenger_unless_it_is_worse_than_all():
    assert first_contest(showing([0.5, 0.4, 0.6, 0.5]), showing([0.5] * 4), FREE, RULE).decision == "first"
    worse = first_contest(showing([0.1, 0.2, 0.1, 0.2]), showing([0.5] * 4), FREE, RULE)
    assert (worse.decision, worse.is_crowned) == ("worse than all", False)
    few = first_contest(showing([0.1]), showing([0.5]), FREE, RULE)
    assert few.decision == "first"
    assert "too few" in few.reason


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=12), st.integers(0, 3))
def test_never_are_both_sides_better_than_the_other(differences: list[float], before: int):
    base = np.full(len(differences), 1.0)
    one, other = showing(list(base + np.array(differences))), showing(list(base))
    earlier = [Contest("kept", "", 4, 4, k + 1, None, str(k), "") for k in range(before)]
    forth, back = (contest(a, b, FREE, "now", earlier, RULE).decision for a, b in ((one, other), (other, one)))
    assert not (forth == back == "promoted")


def test_what_is_remembered_is_read_back_as_it_was():
    from dataclasses import asdict

    for found in (decided(showing([0.6, 0.7, 0.8, 0.7]), showing([0.5] * 4)), decided(showing([1.0]), showing([0.0]))):
        assert Contest.from_json(asdict(found)) == found
