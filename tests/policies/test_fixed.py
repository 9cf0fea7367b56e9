import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.policies import BestFixedPolicy, FitContext, FixedPolicy, PolicyInput

T = 0b00010
ANY = PolicyInput("why?", {}, 1)


@pytest.mark.parametrize(
    ("mask", "name", "kind"), [(31, "all", "all"), (1, "S", "single"), (16, "R", "single"), (3, "S+T", "fixed")]
)
def test_a_fixed_policy_reads_its_subset(mask, name, kind, six_questions):
    policy = FixedPolicy(mask)
    assert (policy.name, policy.kind) == (name, kind)
    assert policy.select(policy.fit(six_questions, FitContext(0.0, 0.0, 0)), ANY) == mask


@pytest.mark.parametrize(
    ("lambda_", "expected"),
    [
        (1e-4, T),  # by hand: T 3/6 - 0.1 = 0.40, S 2/6 - 0.1 = 0.23, all 1/2 - 0.5 = 0.00, others at most 0.2 - 0.1
        (0.0, T),  # T and all tie at 1/2; T costs fewer tokens
    ],
)
def test_best_fixed_is_the_best_on_train_net_of_tokens(lambda_, expected, six_questions):
    policy = BestFixedPolicy()
    assert policy.select(policy.fit(six_questions, FitContext(lambda_, 0.0, 0)), ANY) == expected


def test_equal_score_and_tokens_go_to_the_smaller_mask(make_matrix):
    table = make_matrix([("e", "", None)], np.full((1, 31), 0.5), np.full((1, 31), 7.0))
    assert BestFixedPolicy().fit(table, FitContext(1e-6, 0.0, 0)) == {"subset": 1}


def test_summation_order_does_not_decide_a_tie(make_matrix):
    scores = np.zeros((3, 31))
    scores[:, 0] = [0.3, 0.2, 0.1]  # sums to 0.6 in one order and to 0.6000000000000001 in the other
    scores[:, 1] = [0.1, 0.2, 0.3]
    tokens = np.full((3, 31), 10.0)
    tokens[:, 1] = 9.0
    table = make_matrix([("e", "", None)] * 3, scores, tokens)
    assert BestFixedPolicy().fit(table, FitContext(0.0, 0.0, 0)) == {"subset": 2}


def test_a_missing_training_cell_stops_the_fit_and_is_counted(six_questions):
    six_questions.tokens[2, 4] = six_questions.scores[2, 4] = np.nan
    with pytest.raises(ArtifactError, match=r"1 of 186 .* missing.*mesa sweep"):
        BestFixedPolicy().fit(six_questions, FitContext(0.0, 0.0, 0))


def test_nothing_scored_stops_the_fit(six_questions):
    six_questions.scores[:] = np.nan
    with pytest.raises(ArtifactError, match="no training outcome has a score"):
        BestFixedPolicy().fit(six_questions, FitContext(0.0, 0.0, 0))


def test_no_training_question_stops_the_fit(make_matrix):
    with pytest.raises(ArtifactError):
        BestFixedPolicy().fit(make_matrix([], np.empty((0, 31)), np.empty((0, 31))), FitContext(0.0, 0.0, 0))
