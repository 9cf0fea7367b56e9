import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import stats

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.statistics import (
    clustered_interval,
    mean_and_sample_std,
    paired_bootstrap,
    unpaired_interval,
)


def test_two_episodes_by_hand():
    """Of two episodes with means 0 and 1, resamples have mean 0 (1/4), 1/2 (1/2) or 1 (1/4)."""
    differences, clusters = np.array([0.0, 0.0, 1.0, 1.0]), np.array(["a", "a", "b", "b"], dtype=object)
    wide = paired_bootstrap(differences, clusters, samples=4000, confidence=0.6, seed=0)
    narrow = paired_bootstrap(differences, clusters, samples=4000, confidence=0.4, seed=0)
    assert (wide.low, wide.mean, wide.high) == (0.0, 0.5, 1.0)
    assert (narrow.low, narrow.mean, narrow.high) == (0.5, 0.5, 0.5)
    assert (wide.confidence, wide.clusters) == (0.6, 2)


def test_agrees_with_scipy_on_episodes_of_equal_size():
    rng = np.random.default_rng(1)
    episodes = rng.normal(0.02, 0.1, 40)
    differences = np.repeat(episodes, 12) + rng.normal(0, 0.2, 480)
    found = paired_bootstrap(differences, np.repeat(np.arange(40), 12), 20_000, 0.95, seed=2)
    reference = stats.bootstrap(
        (differences.reshape(40, 12).mean(axis=1),), np.mean, n_resamples=20_000, method="percentile", rng=3
    ).confidence_interval
    assert found.mean == pytest.approx(differences.mean())
    assert found.low == pytest.approx(reference.low, abs=1.5e-3)
    assert found.high == pytest.approx(reference.high, abs=1.5e-3)


def test_resamples_whole_episodes_of_unequal_size():
    """Against a plain loop that draws episodes and pools their questions."""
    rng = np.random.default_rng(4)
    sizes = [1, 2, 5, 9, 3, 14]
    clusters = np.repeat(np.arange(6), sizes)
    differences = rng.normal(size=len(clusters)) + clusters
    means = []
    for _ in range(20_000):
        drawn = np.concatenate([differences[clusters == k] for k in rng.integers(0, 6, 6)])
        means.append(drawn.mean())
    found = paired_bootstrap(differences, clusters, 20_000, 0.9, seed=5)
    assert [found.low, found.high] == pytest.approx(list(np.quantile(means, [0.05, 0.95])), abs=0.06)


def test_correlated_questions_widen_the_interval():
    differences = np.repeat(np.random.default_rng(6).normal(size=30), 10)
    by_episode = paired_bootstrap(differences, np.repeat(np.arange(30), 10), 1000, 0.95, 0)
    by_question = paired_bootstrap(differences, np.arange(300), 1000, 0.95, 0)
    assert by_episode.high - by_episode.low > 2.5 * (by_question.high - by_question.low)  # sqrt(10) = 3.2


def test_covers_the_truth_about_as_often_as_it_says():
    """200 worlds of 50 episodes whose true mean difference is 0; 95 % nominal, 3.5 binomial deviations of slack."""
    rng = np.random.default_rng(7)
    covered = 0
    for world in range(200):
        differences = np.repeat(rng.normal(0, 1, 50), 4) + rng.normal(0, 1, 200)
        found = paired_bootstrap(differences, np.repeat(np.arange(50), 4), 400, 0.95, world)
        covered += found.low <= 0.0 <= found.high
    assert 0.88 <= covered / 200 <= 1.0


@hypothesis_settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(-1, 1)), min_size=1, max_size=30), st.randoms())
def test_contains_its_mean_and_ignores_order(rows, random):
    def interval(rows):
        clusters, differences = zip(*rows, strict=True)
        return paired_bootstrap(np.array(differences), np.array(clusters, dtype=object), 300, 0.999, 0)

    found = interval(rows)
    assert found.low - 1e-9 <= found.mean <= found.high + 1e-9
    shuffled = list(rows)
    random.shuffle(shuffled)
    again = interval(shuffled)
    assert (again.low, again.mean, again.high) == pytest.approx((found.low, found.mean, found.high), abs=1e-9)


def test_no_difference_has_no_width():
    found = paired_bootstrap(np.zeros(10), np.arange(10), 100, 0.95, 0)
    assert (found.low, found.mean, found.high) == (0.0, 0.0, 0.0)
    assert not found.excludes_zero


def test_a_difference_missing_on_either_side_is_left_out():
    differences, clusters = np.array([0.1, np.nan, 0.3, 0.2]), np.array([0, 1, 2, 2])
    kept = ~np.isnan(differences)
    expected = paired_bootstrap(differences[kept], clusters[kept], 200, 0.95, 0)
    assert paired_bootstrap(differences, clusters, 200, 0.95, 0) == expected
    assert expected.clusters == 2


def test_one_episode_is_never_significant():
    found = paired_bootstrap(np.array([0.4, 0.6]), np.array(["e", "e"], dtype=object), 100, 0.95, 0)
    assert (found.low, found.high, found.clusters) == (0.5, 0.5, 1)
    assert not found.excludes_zero


@pytest.mark.parametrize(("values", "significant"), [([0.2, 0.3, 0.25], True), ([-0.2, 0.3, 0.1], False), ([-1, -2, -3], True)])
def test_an_interval_on_one_side_of_zero_excludes_it(values, significant):
    assert paired_bootstrap(np.array(values, dtype=float), np.arange(3), 500, 0.95, 0).excludes_zero is significant


@pytest.mark.parametrize("differences", [np.array([]), np.array([np.nan, np.nan])])
def test_nothing_to_compare_is_an_error(differences):
    with pytest.raises(ArtifactError, match="both sides"):
        paired_bootstrap(differences, np.arange(len(differences)), 100, 0.95, 0)


def test_equal_seeds_give_equal_intervals():
    differences, clusters = np.random.default_rng(8).normal(size=50), np.arange(50)
    assert paired_bootstrap(differences, clusters, 100, 0.95, 3) == paired_bootstrap(differences, clusters, 100, 0.95, 3)
    assert paired_bootstrap(differences, clusters, 100, 0.95, 3) != paired_bootstrap(differences, clusters, 100, 0.95, 4)


def test_mean_and_sample_deviation():
    assert mean_and_sample_std([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) == pytest.approx((5.0, (32 / 7) ** 0.5, 8))
    assert mean_and_sample_std([0.4]) == (0.4, None, 1)


def test_a_clustered_interval_over_episodes_of_one_question_is_the_t_interval_of_scipy():
    values = np.random.default_rng(0).normal(0.1, 0.3, 12)
    found = clustered_interval(values, np.arange(12), 0.99)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.99)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.mean, found.clusters) == (pytest.approx(values.mean()), 12)


def test_a_clustered_interval_by_hand_where_episodes_differ_in_size():
    """Sums 3 of 2 questions and 0 of 1: mean 1; residuals 1 and -1; variance 2/1 * 2 / 9; t(1) at 50% one-sided 75% is 1."""
    found = clustered_interval(np.array([1.0, 2.0, 0.0]), np.array(["a", "a", "b"]), 0.5)
    assert (found.mean, found.high - found.mean) == pytest.approx((1.0, (4 / 9) ** 0.5))


def test_an_unpaired_interval_is_that_of_welch():
    rng = np.random.default_rng(1)
    now, then = rng.normal(0.4, 0.2, 7), rng.normal(0.5, 0.4, 15)
    found = unpaired_interval(now, np.arange(7), then, np.arange(15), 0.95)
    expected = stats.ttest_ind(now, then, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.clusters == 7


def test_unscored_questions_count_for_nothing_and_one_episode_has_no_spread():
    found = clustered_interval(np.array([0.5, np.nan, 0.7]), np.array(["a", "b", "a"]), 0.95)
    assert (found.low, found.mean, found.high, found.clusters) == (0.6, 0.6, 0.6, 1)
    with pytest.raises(ArtifactError):
        clustered_interval(np.array([np.nan]), np.array(["a"]), 0.95)
