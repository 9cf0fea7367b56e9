"""Credit: against hand-worked games, the definitions by orders and by subsets, and the axioms."""

from dataclasses import astuple
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.credit import (
    PAIRS,
    credit,
    group_credit,
    interaction_indices,
    mean_credit,
    minimal_winning,
    shapley_values,
)
from mesa_pipeline.evaluation.statistics import paired_bootstrap
from mesa_pipeline.subsets import ALL_SUBSETS, FULL_SUBSET, STRUCTURE_CODES, decode, encode

score_rows = arrays(np.float64, (3, 31), elements=st.floats(0, 1, allow_subnormal=False))
empty_scores = st.floats(0, 1, allow_subnormal=False)


def game(value) -> np.ndarray:
    """One row of 31 scores from a function of the set of structure codes."""
    return np.array([[value(frozenset(decode(mask))) for mask in ALL_SUBSETS]], dtype=float)


def value_of(row: np.ndarray, empty_score: float, members: frozenset[str]) -> float:
    return float(row[encode(members) - 1]) if members else empty_score


def shapley_by_orders(row: np.ndarray, empty_score: float) -> list[float]:
    """The mean over all 120 orders of what each structure adds to those before it."""
    gains = dict.fromkeys(STRUCTURE_CODES, 0.0)
    orders = list(permutations(STRUCTURE_CODES))
    for order in orders:
        for position, code in enumerate(order):
            before = frozenset(order[:position])
            gains[code] += value_of(row, empty_score, before | {code}) - value_of(row, empty_score, before)
    return [gains[code] / len(orders) for code in STRUCTURE_CODES]


def interaction_by_orders(row: np.ndarray, empty_score: float, first: str, second: str) -> float:
    """The mean over all orders of the four-player game in which the pair acts as one of what it adds by acting as one."""
    players = [*(code for code in STRUCTURE_CODES if code not in (first, second)), "pair"]
    orders = list(permutations(players))
    total = 0.0
    for order in orders:
        before = frozenset(order[: order.index("pair")])
        both, one, other = before | {first, second}, before | {first}, before | {second}
        total += value_of(row, empty_score, both) - value_of(row, empty_score, one)
        total += value_of(row, empty_score, before) - value_of(row, empty_score, other)
    return total / len(orders)


def test_a_glove_game_worked_by_hand() -> None:
    # One left glove (S), two right gloves (T, G), a pair is worth 1: of the 6 orders of these three, S completes the pair in 4
    # and each of T and G in 1.
    scores = game(lambda members: float("S" in members and bool(members & {"T", "G"})))
    np.testing.assert_allclose(shapley_values(scores, 0.0)[0], [4 / 6, 1 / 6, 1 / 6, 0, 0], atol=1e-12)
    # S and T: without G they make a pair (+1), with G nothing more (0); G stands before them in half of the orders.
    # T and G: they replace each other once S is there, in half of the orders.
    found = interaction_indices(scores, 0.0)[0]
    assert found[0, 1] == pytest.approx(0.5)
    assert found[0, 2] == pytest.approx(0.5)
    assert found[1, 2] == pytest.approx(-0.5)
    assert found[3, 4] == pytest.approx(0)


def test_an_additive_game_gives_each_its_own_and_no_interaction() -> None:
    worth = {"S": 0.1, "T": 0.2, "G": -0.05, "V": 0.0, "R": 0.3}
    scores = game(lambda members: 0.2 + sum(worth[code] for code in members))
    np.testing.assert_allclose(shapley_values(scores, 0.2)[0], list(worth.values()), atol=1e-12)
    np.testing.assert_allclose(interaction_indices(scores, 0.2)[0], 0, atol=1e-12)


@given(score_rows, empty_scores)
def test_agrees_with_the_mean_over_orders(scores: np.ndarray, empty_score: float) -> None:
    values, indices = shapley_values(scores, empty_score), interaction_indices(scores, empty_score)
    np.testing.assert_allclose(values[0], shapley_by_orders(scores[0], empty_score), atol=1e-12)
    i, j = 1, 3
    expected = interaction_by_orders(scores[0], empty_score, STRUCTURE_CODES[i], STRUCTURE_CODES[j])
    assert indices[0, i, j] == indices[0, j, i] == pytest.approx(expected, abs=1e-12)


@given(score_rows, empty_scores)
def test_values_add_up_to_what_all_five_gain(scores: np.ndarray, empty_score: float) -> None:
    np.testing.assert_allclose(
        shapley_values(scores, empty_score).sum(axis=1), scores[:, FULL_SUBSET - 1] - empty_score, atol=1e-12
    )


@given(score_rows, empty_scores, st.permutations(range(5)))
def test_renaming_the_structures_renames_their_credit(scores: np.ndarray, empty_score: float, order: list[int]) -> None:
    """Symmetry, in its general form: nothing depends on which structure is which."""
    renamed = np.empty_like(scores)
    for mask in ALL_SUBSETS:
        renamed[:, sum(1 << order[k] for k in range(5) if mask >> k & 1) - 1] = scores[:, mask - 1]
    np.testing.assert_allclose(shapley_values(renamed, empty_score)[:, order], shapley_values(scores, empty_score), atol=1e-12)
    indices = interaction_indices(renamed, empty_score)[:, order][:, :, order]
    np.testing.assert_allclose(indices, interaction_indices(scores, empty_score), atol=1e-12)


@given(score_rows, empty_scores, st.integers(0, 4))
def test_a_structure_that_never_matters_has_no_credit(scores: np.ndarray, empty_score: float, k: int) -> None:
    scores = scores.copy()
    for mask in ALL_SUBSETS:
        if mask >> k & 1:
            rest = mask & ~(1 << k)
            scores[:, mask - 1] = scores[:, rest - 1] if rest else empty_score
    np.testing.assert_allclose(shapley_values(scores, empty_score)[:, k], 0, atol=1e-12)
    np.testing.assert_allclose(interaction_indices(scores, empty_score)[:, k], 0, atol=1e-12)


@given(score_rows, score_rows, st.floats(-2, 2))
def test_credit_is_linear(scores: np.ndarray, others: np.ndarray, factor: float) -> None:
    combined = scores + factor * others
    for measure in (shapley_values, interaction_indices):
        np.testing.assert_allclose(
            measure(combined, 0.1 + factor * 0.2), measure(scores, 0.1) + factor * measure(others, 0.2), atol=1e-10
        )


@given(score_rows)
def test_gains_agree_with_their_definition(make_matrix, scores: np.ndarray) -> None:
    found = credit(make_matrix([("e", "d", "a")] * 3, scores, np.ones((3, 31))), 0.0)
    row, k = scores[1], 2
    without = [frozenset(c) for size in range(1, 5) for c in combinations("STVR", size)]
    gains = [value_of(row, 0.0, rest | {"G"}) - value_of(row, 0.0, rest) for rest in without]
    assert len(gains) == 15
    assert found.add_one[1, k] == pytest.approx(np.mean(gains), abs=1e-12)
    assert found.harmful[1, k] == np.mean([gain < -1e-12 for gain in gains])
    assert found.leave_one_out[1, k] == pytest.approx(row[30] - value_of(row, 0.0, frozenset("STVR")), abs=1e-12)
    assert found.harmful_to_all[1, k] == (found.leave_one_out[1, k] < -1e-12)


def test_a_distracting_structure_is_harmful_and_a_neutral_one_is_not(make_matrix) -> None:
    scores = game(lambda members: 0.5 - 0.1 * ("R" in members))
    found = credit(make_matrix([("e", "d", "a")], scores, np.ones((1, 31))), 0.0)
    np.testing.assert_array_equal(found.harmful, [[0, 0, 0, 0, 1]])
    np.testing.assert_array_equal(found.harmful_to_all, [[False] * 4 + [True]])


def test_a_question_with_an_unscored_subset_is_left_out_and_counted(make_matrix) -> None:
    scores = np.full((3, 31), 0.5)
    scores[1, 17] = np.nan
    matrix = make_matrix([("e", "d", "a"), ("e", "d", "a"), ("f", "d", "b")], scores, np.ones((3, 31)))
    found = credit(matrix, 0.0)
    assert (found.left_out, [question.id for question in found.questions]) == (1, ["e#0", "f#2"])
    assert np.isfinite(found.shapley).all()
    with pytest.raises(ArtifactError, match="none of 1 questions"):
        credit(matrix.select(np.array([False, True, False])), 0.0)


def test_group_means_and_intervals(six_questions, settings) -> None:
    found = credit(six_questions, settings.evaluation.empty_score)
    groups = group_credit(found, lambda question: question.qa_type, settings.evaluation)
    assert [(group.name, group.questions, group.episodes) for group in groups] == [("A", 3, 3), ("B", 2, 2)]
    everything = mean_credit(found, "all questions", settings.evaluation)
    assert everything.questions == 6
    for k in range(5):
        expected = paired_bootstrap(found.shapley[:, k], six_questions.episode_ids, 2000, 0.95, 0)
        assert astuple(everything.shapley[k]) == pytest.approx(astuple(expected))
        assert everything.leave_one_out[k].mean == pytest.approx(found.leave_one_out[:, k].mean())
        assert everything.add_one[k].mean == pytest.approx(found.add_one[:, k].mean())
    for pair, (i, j) in enumerate(PAIRS):
        assert everything.interactions[pair].mean == pytest.approx(found.interactions[:, i, j].mean())
    # S + T + ... all five score 1/2, any four 1/5: leaving anything out loses 0.3 on every question.
    assert everything.leave_one_out[0].low == pytest.approx(0.3) == everything.leave_one_out[0].high


def test_minimal_winning_subsets_are_those_without_a_winning_part() -> None:
    scores = game(lambda members: float("S" in members or {"T", "R"} <= members))
    found = minimal_winning(scores, np.array([1.0]))
    assert {mask for mask in ALL_SUBSETS if found[0, mask - 1]} == {encode("S"), encode("TR")}
    assert not minimal_winning(np.full((1, 31), np.nan), np.array([0.0])).any()
    enough = minimal_winning(game(lambda members: len(members) / 5), np.array([0.6]))
    assert {mask.bit_count() for mask in ALL_SUBSETS if enough[0, mask - 1]} == {3}
