from dataclasses import replace

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation import held_out
from mesa_pipeline.evaluation.aggregate import over_seeds, pooled_versus_all
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.evaluation.statistics import Interval, paired_bootstrap


def result(seed, score, choices=None, names=("frozen policy", "all"), dataset="d"):
    interval = Interval(score - 0.5, -1.0, 1.0, 0.95, 3)
    return held_out.TestResult(
        dataset=dataset,
        seed=seed,
        frozen="lookup",
        comparisons=tuple(
            held_out.Comparison(Evaluation(name, "frozen", 6, score, 1000.0 * seed, 2.0, score - 0.1, 0), interval)
            for name in names
        ),
        choices=choices or {},
        validation=Evaluation("lookup", "lookup", 6, 0.6, 1000.0, 2.0, 0.5, 0),
        receipt=held_out.Receipt("m", "o", "t"),
    )


def test_mean_and_sample_deviation_over_seeds_by_hand():
    frozen, everything = over_seeds([result(0, 0.4), result(1, 0.5), result(2, 0.9)])
    assert (frozen.name, everything.name) == ("frozen policy", "all")
    assert frozen.score == pytest.approx((0.6, (0.07) ** 0.5, 3))  # deviations -0.2, -0.1, 0.3: 0.14 / 2
    assert frozen.tokens == pytest.approx((1000.0, 1000.0, 3))
    assert frozen.structures == (2.0, 0.0, 3)
    assert frozen.objective.mean == pytest.approx(0.5)
    assert frozen.versus_all.mean == pytest.approx(0.1)


def test_one_seed_has_no_deviation():
    assert over_seeds([result(0, 0.4)])[0].score == (0.4, None, 1)


def test_a_row_counts_the_seeds_that_have_it():
    rows = over_seeds([result(0, 0.4), result(1, 0.5, names=("frozen policy", "evolved"))])
    assert [(row.name, row.score.n) for row in rows] == [("frozen policy", 2), ("all", 1), ("evolved", 1)]


@pytest.mark.parametrize("results", [[], [result(0, 0.4), result(0, 0.5)], [result(0, 0.4), result(1, 0.4, dataset="other")]])
def test_results_that_do_not_belong_together_are_refused(results, six_questions, settings):
    for attempt in (lambda: over_seeds(results), lambda: pooled_versus_all(results, six_questions, settings.evaluation)):
        with pytest.raises(ArtifactError):
            attempt()


def test_the_pooled_mean_by_hand(six_questions, settings):
    """Seed 0 reads S on two Game questions (+1/2, 0), seed 1 reads S on the first and T on a WEB one (+1/2, +1/2)."""
    results = [result(0, 0.5, {"g1#0": 1, "g1#1": 1}), result(1, 0.5, {"g1#0": 1, "w1#3": 2})]
    pooled = pooled_versus_all(results, six_questions, settings.evaluation)
    assert pooled.mean == pytest.approx(1.5 / 4)
    assert pooled.clusters == 2


def test_the_same_test_part_five_times_is_no_more_certain_than_once(make_matrix, settings):
    rng = np.random.default_rng(0)
    matrix = make_matrix([(f"e{k}", "", None) for k in range(60)], rng.random((60, 31)), np.ones((60, 31)))
    choices = {question.id: 3 for question in matrix.questions}
    pooled = pooled_versus_all([result(seed, 0.5, choices) for seed in range(5)], matrix, settings.evaluation)
    evaluation = settings.evaluation
    once = paired_bootstrap(
        matrix.scores[:, 2] - matrix.scores[:, 30],
        matrix.episode_ids,
        evaluation.bootstrap_samples,
        evaluation.confidence,
        evaluation.bootstrap_seed,
    )
    assert (pooled.low, pooled.mean, pooled.high) == pytest.approx((once.low, once.mean, once.high))


def test_questions_that_left_the_table_are_counted(six_questions, settings):
    with pytest.raises(ArtifactError, match="1 tested questions"):
        pooled_versus_all([result(0, 0.5, {"gone#0": 1, "g1#0": 1})], six_questions, settings.evaluation)


def test_unscored_questions_are_left_out_of_the_pool(six_questions, settings):
    scores = six_questions.scores.copy()
    scores[1, 30] = np.nan
    matrix = replace(six_questions, scores=scores)
    assert pooled_versus_all([result(0, 0.5, {"g1#0": 1, "g1#1": 1})], matrix, settings.evaluation).mean == 0.5
