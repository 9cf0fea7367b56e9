import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mesa_pipeline.policies.estimates import best_subset, global_means, relative_utilities, shrunk_means

UNIT = st.floats(0.0, 1.0, allow_subnormal=False)


@given(arrays(float, (5, 31), elements=UNIT))
def test_relative_utilities_keep_every_difference_when_all_is_scored(make_matrix, scores):
    tokens = np.arange(5 * 31, dtype=float).reshape(5, 31)
    utilities = relative_utilities(make_matrix([("e", "", None)] * 5, scores, tokens), 1e-3)
    objective = (scores - 1e-3 * tokens).mean(axis=0)
    estimate = global_means(utilities)
    assert estimate - estimate[0] == pytest.approx(objective - objective[0])


def test_failing_on_a_hard_question_makes_no_subset_look_good(make_matrix):
    scores = np.full((2, 31), 0.5)
    scores[0], scores[1] = 0.9, 0.1  # an easy and a hard question, on which all subsets are equal ...
    scores[0, 1] = 0.95  # ... but for T, which is a little better on the easy one
    scores[1, 0] = np.nan  # S failed on the hard one: its plain mean would be 0.9, the highest
    utilities = relative_utilities(make_matrix([("e", "", None)] * 2, scores, np.full((2, 31), 1.0)), 0.0)
    assert best_subset(global_means(utilities), np.ones(31)) == 2


def test_a_subset_never_scored_is_never_chosen(make_matrix):
    scores = np.full((3, 31), -0.5)
    scores[:, 4] = np.nan
    utilities = relative_utilities(make_matrix([("e", "", None)] * 3, scores, np.full((3, 31), 1.0)), 0.0)
    estimate = global_means(utilities)
    assert estimate[4] == -np.inf
    assert shrunk_means(utilities, estimate, 5.0)[4] == -np.inf


def test_shrinkage_by_hand():
    utilities = np.array([[1.0, np.nan], [0.0, np.nan], [0.5, 0.8]])
    parent = np.array([0.1, 0.2])
    # three questions of mean 0.5 against six of 0.1; one question of 0.8 against six of 0.2
    assert shrunk_means(utilities, parent, 6.0) == pytest.approx([(3 * 0.5 + 6 * 0.1) / 9, (0.8 + 6 * 0.2) / 7])


def test_without_shrinkage_a_group_trusts_itself_wherever_it_can():
    utilities = np.array([[1.0, np.nan]])
    assert shrunk_means(utilities, np.array([0.1, 0.2]), 0.0) == pytest.approx([1.0, 0.2])


@pytest.mark.parametrize("strength", [0.0, 20.0, np.inf])
def test_an_empty_group_is_its_parent(strength):
    parent = np.array([0.1, -np.inf])
    assert np.array_equal(shrunk_means(np.empty((0, 2)), parent, strength), parent)


@given(arrays(float, (4, 31), elements=UNIT), arrays(float, 31, elements=UNIT))
def test_infinite_shrinkage_is_the_parent(utilities, parent):
    assert np.array_equal(shrunk_means(utilities, parent, np.inf), parent)


def test_best_subset_keeps_to_what_is_allowed():
    assert best_subset(np.arange(31.0), np.ones(31), allowed=(1, 2, 4, 8, 16)) == 16
