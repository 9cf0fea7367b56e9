"""Systems side by side, against figures worked by hand on six questions."""

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.compared_systems import Answers, Retrieval, compare_systems, grouped_standings, standings_of
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, Comparison, Receipt, TestResult
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.evaluation.systems import SystemOutcome
from mesa_pipeline.llm.metering import Cost

SINGLES = {"S": 1, "T": 2, "G": 4, "V": 8, "R": 16, "all": 31}


def result(seed, choices, kept=True):
    """A test that kept the single structures, all five and, as the oracle, S."""
    row = Comparison(Evaluation(FROZEN_ROW, "frozen", 2, 0.5, 1000.0, 2.0, 0.5, 0), Interval(0.0, -1.0, 1.0, 0.95, 3))
    others = {name: (mask,) * len(choices) for name, mask in (SINGLES | {"oracle": 1}).items()} if kept else {}
    return TestResult("d", seed, "p", (row,), choices, row.evaluation, Receipt("m", "o", "t"), others)


def outcome(question, score, tokens=100, calls=0, prompt_tokens=0):
    return SystemOutcome(question, score, tokens, "a", Cost(calls=calls, prompt_tokens=prompt_tokens))


@pytest.fixture
def tests():
    """Seed 0: S on g1#0 (1), all on w1#3 (1/2). Seed 1: T on w1#3 (1) and on w1#4 (1)."""
    return [result(1, {"w1#4": 2, "w1#3": 2}), result(0, {"w1#3": 31, "g1#0": 1})]


@pytest.fixture
def baseline():
    """Right on w1#3 after two calls, unscored on g1#0, and never asked w1#4."""
    outcomes = [outcome("w1#3", 1.0, 300, 2, 1000), outcome("g1#0", None, 100)]
    return Answers("loop", "Loop", {found.question_id: found for found in outcomes})


def named(standings):
    return {standing.code: standing for standing in standings}


def test_scores_tokens_and_counts_by_hand(tests, baseline, six_questions, settings):
    comparison = compare_systems(tests, six_questions, [baseline])
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


def test_groups_hold_their_own_questions(tests, baseline, six_questions):
    comparison = compare_systems(tests, six_questions, [baseline])
    groups = grouped_standings(comparison, lambda question: question.domain)
    assert list(groups) == ["Game", "WEB"]
    game, web = (named(groups[name]) for name in groups)
    assert game[FROZEN_ROW].score == (1.0, None, 1)  # one seed tests a question of Game
    assert game["loop"].score is None
    assert (game["loop"].questions, game["loop"].unscored) == (1, 1)
    assert web[FROZEN_ROW].score.mean == pytest.approx((0.5 + 1) / 2)
    assert web["loop"].unasked == 1


def test_what_retrieval_asked_is_counted_for_the_structures_read(tests, six_questions):
    prompts = np.zeros((6, 5))
    prompts[:, 1] = 40.0  # T's check
    retrieval = Retrieval(prompts, (prompts > 0).astype(float))
    found = named(standings_of(compare_systems(tests, six_questions, [], retrieval)))
    assert found["S"].query_tokens.mean == 1000.0
    assert found["T"].query_tokens.mean == 1040.0
    assert found["random"].calls.mean == pytest.approx(16 / 31)
    assert found[FROZEN_ROW].calls.mean == pytest.approx((0.5 + 1) / 2)


def test_what_is_not_known_of_a_structure_is_not_known_of_its_subsets(tests, six_questions):
    prompts = np.zeros((6, 5))
    prompts[:, 4] = np.nan
    found = named(standings_of(compare_systems(tests, six_questions, [], Retrieval(prompts, prompts))))
    assert found["S"].query_tokens.mean == 1000.0
    assert found["R"].query_tokens is found["all"].query_tokens is None


def test_one_seed_alone(tests, six_questions):
    found = named(standings_of(compare_systems(tests, six_questions, []).only([1])))
    assert found[FROZEN_ROW].score == (1.0, None, 1)


def test_rows_that_a_test_did_not_keep_are_left_out(six_questions):
    comparison = compare_systems([result(0, {"w1#3": 2}, kept=False)], six_questions, [])
    assert [system.code for system in comparison.systems] == ["random", FROZEN_ROW]


def test_mistakes_are_told(six_questions):
    with pytest.raises(ArtifactError, match="mesa test"):
        compare_systems([], six_questions, [])
    with pytest.raises(ArtifactError, match="mesa sweep"):
        compare_systems([result(2, {"gone#0": 1})], six_questions, [])
