import json
from dataclasses import replace

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation import held_out
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, LABEL_FREE_ROW, Receipt, SplitOutcomes, held_out_test, outcomes_sha256
from mesa_pipeline.policies import FitContext, LookupPolicy

RECEIPT = Receipt("m" * 64, "o" * 64, "2026-01-02T03:04:05+00:00")


def random_table(make_matrix, seed, prefix):
    rng = np.random.default_rng(seed)
    labels = [(f"{prefix}{k // 4}", ["Game", "WEB"][k // 4 % 2], "ABC"[k % 3]) for k in range(40)]
    return make_matrix(labels, rng.random((40, 31)), rng.integers(100, 9_000, (40, 31)))


@pytest.fixture
def splits(make_matrix):
    return SplitOutcomes(*(random_table(make_matrix, seed, name) for seed, name in enumerate(["train", "val", "test"])))


@pytest.fixture
def run(settings):
    """Test a raw lookup by domain."""

    def run_test(splits):
        fitted = LookupPolicy(("domain",), shrunk=False).fitted(splits.train, FitContext.of(settings, 0))
        return held_out_test(fitted, splits, "synthetic", 0, RECEIPT, settings)

    return run_test


@pytest.fixture
def six_splits(six_questions):
    return SplitOutcomes(six_questions, six_questions, six_questions)


def test_rows_by_hand(six_splits, run):
    result = run(six_splits)
    by_domain = result.row(FROZEN_ROW)
    assert by_domain.evaluation.kind == "frozen"
    assert by_domain.evaluation.score == pytest.approx(0.75)  # S on Game: 2/3; T on WEB: 5/6
    assert by_domain.versus_all.mean == pytest.approx(0.25)
    assert by_domain.versus_all.clusters == 4
    label_free = result.row(LABEL_FREE_ROW)
    assert label_free.evaluation.kind == "frozen"
    assert label_free.evaluation.score == pytest.approx(0.5)  # T everywhere
    assert result.frozen == "lookup by domain (raw)"
    assert list(result.choices.values()) == [1, 1, 1, 2, 2, 2]
    assert next(iter(result.choices)) == "g1#0"
    assert result.inflation == pytest.approx(0.0)


def test_the_ladder_is_complete(splits, run):
    result = run(splits)
    names = [comparison.evaluation.name for comparison in result.comparisons]
    assert names[:2] == [FROZEN_ROW, LABEL_FREE_ROW]
    assert names[2:8] == ["all", "S", "T", "G", "V", "R"]
    assert names[-3:] == ["route-to-one", "random", "oracle"]
    assert len(names) == len(set(names)) == 18
    with pytest.raises(KeyError):
        result.row("no such row")


def test_what_every_row_chose_gives_its_score_again(splits, run):
    result = run(splits)
    rows = sorted(range(len(splits.test)), key=lambda row: splits.test.questions[row].id)
    named = [comparison.evaluation.name for comparison in result.comparisons]
    assert set(result.others) == set(named) - {FROZEN_ROW, "random"}
    for name, masks in result.others.items():
        scores = splits.test.scores[rows, np.array(masks) - 1]
        assert scores.mean() == pytest.approx(result.row(name).evaluation.score)


def test_reading_all_differs_from_itself_by_nothing(splits, run):
    interval = run(splits).row("all").versus_all
    assert (interval.low, interval.mean, interval.high) == (0.0, 0.0, 0.0)


def test_random_and_oracle_come_from_the_whole_table(splits, run, settings):
    result, scores = run(splits), splits.test.scores
    assert result.row("random").evaluation.score == pytest.approx(scores.mean())
    assert result.row("random").versus_all.mean == pytest.approx((scores.mean(axis=1) - scores[:, 30]).mean())
    best = (scores - settings.search.lambda_ * splits.test.tokens).max(axis=1).mean()
    assert result.row("oracle").evaluation.objective == pytest.approx(best)


def test_nothing_is_fitted_to_validation_or_test(splits, run, make_matrix):
    """Other outcomes of the same questions change what policies are worth, not what any of them reads."""
    before = run(splits)
    other = replace(
        splits,
        validation=replace(splits.validation, scores=1.0 - splits.validation.scores),
        test=replace(splits.test, scores=1.0 - splits.test.scores),
    )
    after = run(other)
    assert after.choices == before.choices
    for comparison in before.comparisons:
        if comparison.evaluation.kind != "oracle":
            again = after.row(comparison.evaluation.name).evaluation
            assert again.tokens == comparison.evaluation.tokens
            assert again.structures == comparison.evaluation.structures


def test_inflation_is_validation_less_test(splits, run):
    result = run(splits)
    assert result.inflation == pytest.approx(result.validation.score - result.row(FROZEN_ROW).evaluation.score)
    assert result.validation.n == 40


def test_differences_pair_the_questions_scored_on_both_sides(six_splits, run):
    unscored = six_splits.test.scores.copy()
    unscored[0, 0] = unscored[4, 30] = np.nan  # the policy is unscored on the first question, "all" on the fifth
    result = run(replace(six_splits, test=replace(six_splits.test, scores=unscored)))
    policy = result.row(FROZEN_ROW)
    assert policy.evaluation.unscored == 1
    assert policy.evaluation.score == pytest.approx((0.5 + 0.5 + 1 + 1 + 0.5) / 5)
    assert policy.versus_all.mean == pytest.approx((0.0 + 0.0 + 0.5 + 0.0) / 4)
    assert result.row("all").evaluation.unscored == 1


def test_a_test_outcome_never_swept_stops_the_test(splits, run):
    splits.test.tokens[3, 30] = splits.test.scores[3, 30] = np.nan
    with pytest.raises(ArtifactError, match="1 of 40 outcomes needed are missing"):
        run(splits)


def test_a_result_survives_json(splits, run):
    result = run(splits)
    text = json.dumps(result.to_json(), allow_nan=False)
    assert held_out.TestResult.from_json(json.loads(text)) == result
    assert json.loads(text)["inflation"] == result.inflation


def test_two_tests_of_the_same_are_the_same(splits, run):
    assert run(splits) == run(splits)


def test_a_receipt_is_of_one_policy_on_one_set_of_outcomes():
    assert RECEIPT.matches("m" * 64, "o" * 64)
    assert not RECEIPT.matches("x" * 64, "o" * 64)
    assert not RECEIPT.matches("m" * 64, "x" * 64)


def test_the_hash_of_outcomes_changes_with_any_of_them(six_questions):
    before = outcomes_sha256(six_questions)
    assert outcomes_sha256(replace(six_questions)) == before
    for field in ("scores", "tokens"):
        changed = getattr(six_questions, field).copy()
        changed[5, 30] += 1e-9
        assert outcomes_sha256(replace(six_questions, **{field: changed})) != before
    reworded = (replace(six_questions.questions[0], text="\ud800"), *six_questions.questions[1:])
    assert outcomes_sha256(replace(six_questions, questions=reworded)) != before
