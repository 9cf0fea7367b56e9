"""The ladder against differences worked by hand on six questions."""

from dataclasses import replace

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.aggregate import pooled_versus_all
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, Comparison, Receipt, TestResult
from mesa_pipeline.evaluation.ladder import ladder
from mesa_pipeline.evaluation.statistics import Interval


def result(seed, choices, score=0.5, **others):
    """A test whose rows are named by ``others``, their masks in the order of the question ids."""
    interval = Interval(0.0, -1.0, 1.0, 0.95, 3)
    names = (FROZEN_ROW, *others, *(["random"] if others else []))
    return TestResult(
        dataset="d",
        seed=seed,
        frozen="utility",
        comparisons=tuple(Comparison(Evaluation(name, "frozen", 2, score, 1000.0, 2.0, score, 0), interval) for name in names),
        choices=choices,
        validation=Evaluation("utility", "executable", 6, 0.6, 1000.0, 2.0, 0.5, 0),
        receipt=Receipt("m", "o", "t"),
        others={name: tuple(masks) for name, masks in others.items()},
    )


@pytest.fixture
def results():
    """S on a Game question (1, all: 1/2) and on a WEB one (0, all: 1/2), then T on two WEB ones (1, 1)."""
    return [
        result(0, {"w1#3": 1, "g1#0": 1}, 0.5, all=(31, 31), lookup=(2, 2)),
        result(1, {"w1#3": 2, "w1#4": 2}, 0.9, all=(31, 31), lookup=(1, 1)),
    ]


def test_differences_by_hand(results, six_questions, settings):
    rungs = {rung.name: rung for rung in ladder(results, {}, six_questions, settings.evaluation)}
    assert rungs[FROZEN_ROW].versus_all.mean == pytest.approx((0.5 - 0.5 + 0.5 + 0.5) / 4)
    assert rungs[FROZEN_ROW].versus_frozen is None
    assert rungs["all"].versus_all == Interval(0.0, 0.0, 0.0, 0.95, 2)
    assert rungs["all"].versus_frozen.mean == pytest.approx(-rungs[FROZEN_ROW].versus_all.mean)
    lookup = rungs["lookup"]  # T: 0 on g1#0, 1 on w1#3; S: 0 on both
    assert lookup.versus_all.mean == pytest.approx((-0.5 + 0.5 - 0.5 - 0.5) / 4)
    assert lookup.versus_frozen.mean == pytest.approx((0 - 1 + 1 - 0 + 0 - 1 + 0 - 1) / 4)
    means = six_questions.scores.mean(axis=1)[[0, 3, 3, 4]]
    assert rungs["random"].versus_all.mean == pytest.approx(np.mean(means - 0.5))
    assert rungs["lookup"].summary.score == pytest.approx((0.7, 0.08**0.5, 2))


def test_the_frozen_policy_is_pooled_as_elsewhere(results, six_questions, settings):
    (first, *_) = ladder(results, {}, six_questions, settings.evaluation)
    assert first.versus_all == pooled_versus_all(
        [replace(r, choices=dict(sorted(r.choices.items()))) for r in results], six_questions, settings.evaluation
    )


def test_an_ablation_is_compared_on_the_seeds_it_shares(results, six_questions, settings):
    ablations = {
        "route to one": [result(1, {"w1#4": 1, "w1#3": 2}), result(7, {"w2#5": 1})],
        "elsewhere": [result(8, {"w2#5": 1})],
    }
    *_, last = ladder(results, ablations, six_questions, settings.evaluation)
    assert (last.name, last.ablation, last.summary.score.n) == ("route to one", True, 1)
    assert last.versus_frozen.mean == pytest.approx(-0.5)
    assert last.versus_frozen.clusters == 1


def test_an_equal_policy_differs_by_nothing(results, six_questions, settings):
    *_, last = ladder(results, {"same": results}, six_questions, settings.evaluation)
    assert (last.versus_frozen.low, last.versus_frozen.high) == (0.0, 0.0)


def test_a_question_that_is_gone_is_named(results, six_questions, settings):
    with pytest.raises(ArtifactError, match="mesa sweep"):
        ladder([*results, result(2, {"gone#0": 1})], {}, six_questions, settings.evaluation)


def test_a_test_that_kept_no_choices_gives_means_alone(results, six_questions, settings):
    old = [replace(result, others={}) for result in results]
    rungs = {rung.name: rung for rung in ladder(old, {}, six_questions, settings.evaluation)}
    assert rungs["lookup"].versus_all is rungs["lookup"].versus_frozen is None
    assert rungs["lookup"].summary.score.mean == pytest.approx(0.7)
    assert rungs[FROZEN_ROW].versus_all is not None
