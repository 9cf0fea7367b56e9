import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mesa_pipeline.errors import ArtifactError, PolicyError
from mesa_pipeline.evaluation.evaluate import (
    evaluate_choices,
    evaluate_policy,
    fully_scored,
    oracle,
    oracle_choices,
    random_expectation,
)
from mesa_pipeline.policies import FitContext, LookupPolicy
from mesa_pipeline.subsets import ALL_SUBSETS, size

LAMBDA = 1e-4
S, T, ALL = 1, 2, 31


@st.composite
def tables(draw, unscored=(0.0, 0.3)):
    """Scores and tokens of 1 to 12 questions, each with at least one score, and one choice a question."""
    n, rng = draw(st.integers(1, 12)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.random((n, 31))
    scores[rng.random((n, 31)) < draw(st.sampled_from(unscored))] = np.nan
    scores[:, 30] = 0.5
    return scores, rng.integers(0, 20_000, (n, 31)).astype(float), rng.integers(1, 32, n)


def matrix_of(make_matrix, scores, tokens):
    return make_matrix([("e", "", None)] * len(scores), scores, tokens)


def test_by_hand(six_questions):
    found = evaluate_choices("mixed", "fixed", six_questions, np.array([S, S, S, T, T, ALL]), LAMBDA)
    assert (found.name, found.kind, found.n, found.unscored) == ("mixed", "fixed", 6, 0)
    assert found.score == pytest.approx((1 + 0.5 + 0.5 + 1 + 1 + 0.5) / 6)
    assert found.tokens == pytest.approx((5 * 1000 + 5000) / 6)
    assert found.structures == pytest.approx((5 * 1 + 5) / 6)
    assert found.objective == pytest.approx(4.5 / 6 - LAMBDA * 10_000 / 6)


def test_an_unscored_question_is_left_out_of_the_score_and_pays_its_tokens(six_questions):
    six_questions.scores[0, S - 1] = np.nan
    found = evaluate_choices("mixed", "fixed", six_questions, np.array([S, S, S, T, T, ALL]), LAMBDA)
    assert found.unscored == 1
    assert found.n == 6
    assert found.score == pytest.approx(3.5 / 5)
    assert found.tokens == pytest.approx(10_000 / 6)


@given(tables())
def test_equals_a_naive_loop(make_matrix, table):
    scores, tokens, choices = table
    if all(np.isnan(scores[k, mask - 1]) for k, mask in enumerate(choices)):
        choices[0] = ALL
    kept, spent, read = [], 0.0, 0
    for k, mask in enumerate(choices):
        if scores[k, mask - 1] == scores[k, mask - 1]:
            kept.append(scores[k, mask - 1])
        spent += tokens[k, mask - 1]
        read += size(int(mask))
    found = evaluate_choices("x", "lookup", matrix_of(make_matrix, scores, tokens), choices, LAMBDA)
    assert found.score == pytest.approx(sum(kept) / len(kept))
    assert found.tokens == pytest.approx(spent / len(choices))
    assert found.structures == pytest.approx(read / len(choices))
    assert found.unscored == len(choices) - len(kept)
    assert found.objective == pytest.approx(found.score - LAMBDA * found.tokens)


@given(tables(unscored=(0.0,)))
def test_nothing_beats_the_oracle(make_matrix, table):
    scores, tokens, choices = table
    matrix = matrix_of(make_matrix, scores, tokens)
    best = oracle(matrix, LAMBDA).objective + 1e-12
    assert best >= evaluate_choices("x", "lookup", matrix, choices, LAMBDA).objective
    assert best >= random_expectation(matrix, LAMBDA).objective
    for mask in ALL_SUBSETS:
        assert best >= evaluate_choices("x", "fixed", matrix, np.full(len(choices), mask), LAMBDA).objective


@given(tables())
def test_the_oracle_equals_a_naive_search(make_matrix, table):
    scores, tokens, _ = table
    chosen = oracle_choices(matrix_of(make_matrix, scores, tokens), LAMBDA)
    for k, mask in enumerate(chosen):
        ranked = [
            (-(scores[k, m - 1] - LAMBDA * tokens[k, m - 1]), tokens[k, m - 1], m)
            for m in ALL_SUBSETS
            if not np.isnan(scores[k, m - 1])
        ]
        assert mask == min(ranked)[2]


def test_the_oracle_breaks_ties_by_tokens_then_mask(make_matrix):
    tokens = np.full((2, 31), 9.0)
    tokens[1, 6] = 4.0
    assert oracle_choices(matrix_of(make_matrix, np.full((2, 31), 0.5), tokens), 0.0).tolist() == [1, 7]


def test_a_question_without_any_score_costs_the_oracle_its_cheapest_subset(six_questions):
    six_questions.scores[5] = np.nan
    found = oracle(six_questions, LAMBDA)
    assert found.unscored == 1
    assert found.score == pytest.approx((1 + 0.5 + 0.5 + 1 + 1) / 5)
    assert found.tokens == 1000.0


@given(tables(unscored=(0.0,)))
def test_random_is_the_mean_of_the_table(make_matrix, table):
    scores, tokens, _ = table
    found = random_expectation(matrix_of(make_matrix, scores, tokens), LAMBDA)
    assert found.score == pytest.approx(scores.mean())
    assert found.tokens == pytest.approx(tokens.mean())
    assert found.structures == pytest.approx(80 / 31)
    assert found.objective == pytest.approx(scores.mean() - LAMBDA * tokens.mean())


def test_random_leaves_out_unscored_cells_within_their_question(make_matrix):
    scores = np.full((3, 31), np.nan)
    scores[0, 0], scores[1, :2] = 1.0, [0.0, 0.5]
    found = random_expectation(matrix_of(make_matrix, scores, np.full((3, 31), 100.0)), 0.0)
    assert found.score == pytest.approx((1.0 + 0.25) / 2)
    assert found.unscored == 1


def test_touching_a_cell_that_was_never_swept_stops_the_evaluation(six_questions):
    six_questions.scores[:2, S - 1] = six_questions.tokens[:2, S - 1] = np.nan
    with pytest.raises(ArtifactError, match=r"S: 2 of 6 .* missing.*mesa sweep"):
        evaluate_choices("S", "single", six_questions, np.full(6, S), LAMBDA)
    for whole_table in (random_expectation, oracle):
        with pytest.raises(ArtifactError, match=r"2 of 186 .* missing"):
            whole_table(six_questions, LAMBDA)
    assert evaluate_choices("T", "single", six_questions, np.full(6, T), LAMBDA).score == pytest.approx(0.5)


def test_no_score_at_all_is_an_error_and_not_a_zero(six_questions):
    six_questions.scores[:] = np.nan
    for attempt in (
        lambda: evaluate_choices("S", "single", six_questions, np.full(6, S), LAMBDA),
        lambda: random_expectation(six_questions, LAMBDA),
        lambda: oracle(six_questions, LAMBDA),
        lambda: fully_scored(six_questions),
    ):
        with pytest.raises(ArtifactError):
            attempt()


def test_no_question_at_all_is_an_error(make_matrix):
    empty = make_matrix([], np.empty((0, 31)), np.empty((0, 31)))
    for attempt in (
        lambda: evaluate_choices("S", "single", empty, np.empty(0, dtype=int), LAMBDA),
        lambda: random_expectation(empty, LAMBDA),
        lambda: oracle(empty, LAMBDA),
        lambda: fully_scored(empty),
    ):
        with pytest.raises(ArtifactError):
            attempt()


@pytest.mark.parametrize("choices", [[1, 1], [0] * 6, [32] * 6, [-1] * 6, [1.5] * 6, [np.nan] * 6, [1.0] * 6])
def test_choices_must_be_one_subset_a_question(choices, six_questions):
    with pytest.raises(PolicyError, match="6 subsets"):
        evaluate_choices("x", "fixed", six_questions, np.array(choices), LAMBDA)


def test_a_policy_falls_back_where_labels_are_withheld(six_questions):
    fitted = LookupPolicy(("domain",), shrunk=False).fitted(six_questions, FitContext(LAMBDA, 0.0, 0))
    with_labels = evaluate_policy(fitted, six_questions, LAMBDA)
    assert (with_labels.name, with_labels.kind) == ("lookup by domain (raw)", "lookup")
    assert with_labels.score == pytest.approx((2 + 2.5) / 6)  # S on Game, T on WEB
    assert evaluate_policy(fitted, six_questions, LAMBDA, labels=False).score == pytest.approx(0.5)  # T everywhere


def test_fully_scored_keeps_the_questions_scored_under_every_subset(six_questions):
    six_questions.scores[1, 7] = np.nan
    kept = fully_scored(six_questions)
    assert len(kept) == 5
    assert six_questions.questions[1] not in kept.questions


@hypothesis_settings(max_examples=20)
@given(tables(), st.integers(0, 2**32 - 1))
def test_the_order_of_questions_changes_nothing(make_matrix, table, seed):
    scores, tokens, _ = table
    order = np.random.default_rng(seed).permutation(len(scores))
    straight = matrix_of(make_matrix, scores, tokens)
    permuted = matrix_of(make_matrix, scores[order], tokens[order])
    assert oracle(permuted, LAMBDA).objective == pytest.approx(oracle(straight, LAMBDA).objective)
    assert random_expectation(permuted, LAMBDA).score == pytest.approx(random_expectation(straight, LAMBDA).score)
