"""Rules to select by, on an archive small enough to work by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.errors import ConfigError
from mesa_pipeline.evaluation.evaluate import evaluate_choices
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.search.selection import RULES, Evidence, clustered_standard_error, select_entry
from tests.search.searches import entry, search_settings

STEADY, LUCKY, CHEAP = "01-explore", "02-explore", "03-explore"
MASKS = {"all": 31, STEADY: 1, LUCKY: 2, CHEAP: 4}
SCORES = {
    "all": [0.4, 0.4, 0.4, 0.4],
    STEADY: [0.6, 0.6, 0.6, 0.6],
    LUCKY: [1.0, 1.0, 0.3, 0.3],
    CHEAP: [0.6, 0.6, 0.5, 0.5],
}
TOKENS = {"all": 4000.0, STEADY: 2000.0, LUCKY: 2000.0, CHEAP: 100.0}


@pytest.fixture
def validation(make_matrix) -> OutcomeMatrix:
    scores, tokens = np.full((4, 31), 0.1), np.full((4, 31), 9000.0)
    for name, mask in MASKS.items():
        scores[:, mask - 1], tokens[:, mask - 1] = SCORES[name], TOKENS[name]
    return make_matrix([("a", "", None), ("a", "", None), ("b", "", None), ("b", "", None)], scores, tokens)


def evidence_of(validation, crossfit=lambda entry: None) -> Evidence:
    choices = {name: np.full(len(validation), mask) for name, mask in MASKS.items()}
    entries = [
        entry(name, validation=evaluate_choices(name, "executable", validation, chosen, 0.0))
        for name, chosen in choices.items()
    ]
    return Evidence(entries, validation, choices, crossfit)


def selected(evidence: Evidence, **settings) -> str:
    return select_entry(evidence, search_settings(lambda_=0.0, **settings)).id


def test_every_rule_of_the_settings_is_there():
    for rule in RULES:
        assert search_settings(select=rule).select == rule


def test_by_default_the_highest_mean_wins_as_in_the_paper(validation):
    """0.65 on average: the lucky one."""
    assert selected(evidence_of(validation)) == LUCKY
    assert search_settings().select == "argmax"


def test_the_lower_bound_by_hand(validation):
    """LUCKY's deviations sum to 0.7 and -0.7 in two episodes: error sqrt(2/1 x 2 x 0.49) / 4 = 0.35, bound 0.30.

    STEADY's bound is 0.6; CHEAP's error is sqrt(2 x 2 x 0.01) / 4 = 0.05, its bound 0.5.
    """
    evidence = evidence_of(validation)
    assert evidence.error(evidence.objectives(evidence.entries[2], 0.0)) == pytest.approx(0.35)
    assert selected(evidence, select="lcb", lcb_z=1.0) == STEADY
    assert selected(evidence, select="lcb", lcb_z=0.1) == LUCKY
    assert selected(evidence, select="lcb", lcb_z=0.0) == LUCKY


def test_the_cheapest_within_one_error_of_the_best_by_hand(validation):
    """CHEAP is behind LUCKY by 0.4, 0.4, -0.2, -0.2: mean 0.1, error sqrt(2 x 2 x 0.36) / 4 = 0.3."""
    assert selected(evidence_of(validation), select="one-se-cheapest") == CHEAP


def test_a_policy_that_is_surely_behind_is_not_close(validation):
    """Against STEADY at 0.8, CHEAP is behind by 0.2, 0.2, 0.3, 0.3: mean 0.25, error 0.05."""
    validation.scores[:, MASKS[STEADY] - 1] = 0.8
    assert selected(evidence_of(validation), select="one-se-cheapest") == STEADY


def test_equal_choices_are_as_close_as_can_be(validation):
    validation.scores[:, :] = 0.5
    assert selected(evidence_of(validation), select="one-se-cheapest") == CHEAP


def test_cross_fitted_means_decide_and_what_cannot_be_fitted_is_left_out(validation):
    means = {"all": 0.4, STEADY: 0.5, LUCKY: None, CHEAP: 0.45}
    evidence = evidence_of(validation, lambda entry: means[entry.id])
    assert selected(evidence, select="crossfit") == STEADY


def test_cross_fitting_is_asked_for_by_its_rule_alone(validation):
    def asked(entry):
        raise AssertionError("fitted for nothing")

    for rule in set(RULES) - {"crossfit"}:
        selected(evidence_of(validation, asked), select=rule)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_ties_go_to_fewer_tokens_then_to_the_earliest(rule, validation):
    validation.scores[:] = 0.5
    evidence = evidence_of(validation, lambda entry: 0.5)
    assert selected(evidence, select=rule) == CHEAP
    validation.tokens[:] = 7.0
    assert selected(evidence_of(validation, lambda entry: 0.5), select=rule) == "all"


def test_objectives_are_scores_less_the_price_of_their_tokens(validation):
    evidence = evidence_of(validation)
    assert evidence.objectives(evidence.entries[1], 1e-4).tolist() == pytest.approx([0.4] * 4)


@pytest.mark.parametrize("rule", ["lcb", "one-se-cheapest"])
def test_one_episode_says_nothing_of_how_episodes_differ(rule, validation):
    alone = replace(validation, questions=tuple(replace(question, episode_id="a") for question in validation.questions))
    with pytest.raises(ConfigError, match=r"two validation episodes.*argmax"):
        selected(evidence_of(alone), select=rule)
    assert selected(evidence_of(alone)) == LUCKY


VALUES = st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=20)


@given(VALUES)
def test_with_one_question_an_episode_it_is_the_plain_standard_error(values):
    array = np.array(values)
    plain = array.std(ddof=1) / np.sqrt(len(values))
    assert clustered_standard_error(array, np.arange(len(values))) == pytest.approx(plain, abs=1e-12)


@given(st.lists(st.tuples(st.floats(-1, 1, width=32), st.sampled_from("abcd")), min_size=2, max_size=30))
def test_it_is_the_formula_written_out(pairs):
    values, clusters = [value for value, _ in pairs], [cluster for _, cluster in pairs]
    names = set(clusters)
    if len(names) < 2:
        return
    mean = sum(values) / len(values)
    total = sum(sum(value - mean for value, cluster in pairs if cluster == name) ** 2 for name in names)
    expected = (len(names) / (len(names) - 1) * total) ** 0.5 / len(values)
    found = clustered_standard_error(np.array(values), np.array(clusters, dtype=object))
    assert found == pytest.approx(expected, abs=1e-9)


@given(VALUES)
def test_repeating_every_value_within_its_episode_adds_no_certainty(values):
    once = clustered_standard_error(np.array(values), np.arange(len(values)))
    thrice = clustered_standard_error(np.repeat(values, 3), np.repeat(np.arange(len(values)), 3))
    assert thrice == pytest.approx(once, abs=1e-12)
