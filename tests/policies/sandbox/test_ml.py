import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.policies.sandbox import ml


def data(n: int = 40, p: int = 5, m: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(2.0, 1.5, (n, p))
    return x, x @ rng.normal(size=(p, m)) + 4.0 + rng.normal(0, 0.3, (n, m))


def test_ridge_without_a_penalty_is_least_squares() -> None:
    x, y = data()
    expected = np.linalg.lstsq(np.c_[np.ones(len(x)), x], y, rcond=None)[0]

    model = ml.ridge(x.tolist(), y.tolist(), 0.0)

    assert np.allclose(model["coefficients"], expected[1:])
    assert np.allclose(ml.predict(model, x.tolist()), np.c_[np.ones(len(x)), x] @ expected)


def test_ridge_equals_least_squares_on_rows_that_stand_for_the_penalty() -> None:
    x, y = data()
    strength = 7.0
    centred, level = x - x.mean(axis=0), y - y.mean(axis=0)
    augmented = np.r_[centred, np.sqrt(strength) * np.eye(x.shape[1])]
    expected = np.linalg.lstsq(augmented, np.r_[level, np.zeros((x.shape[1], y.shape[1]))], rcond=None)[0]

    assert np.allclose(ml.ridge(x.tolist(), y.tolist(), strength)["coefficients"], expected)


def test_one_feature_by_hand() -> None:
    # Deviations -1, 0, 1 and -2, 0, 2: 4 / (2 + 2) = 1.
    model = ml.ridge([[1.0], [2.0], [3.0]], [[0.0], [2.0], [4.0]], 2.0)

    assert model == {"centre": [2.0], "intercept": [2.0], "coefficients": [[pytest.approx(1.0)]]}
    assert ml.predict(model, [[5.0]]) == [[pytest.approx(5.0)]]


@given(st.integers(0, 200), st.floats(0.0, 1e4))
def test_a_model_is_json_and_predicts_the_mean_at_the_centre(seed: int, strength: float) -> None:
    x, y = data(12, 3, 2, seed)
    model = json.loads(json.dumps(ml.ridge(x.tolist(), y.tolist(), strength), allow_nan=False))

    assert np.allclose(ml.predict(model, [model["centre"]]), y.mean(axis=0))


def test_the_strength_is_that_which_predicts_whole_groups_left_out() -> None:
    x, y = data(30, 6, 1, 3)
    groups = [k // 5 for k in range(30)]
    strengths = [0.1, 10.0, 1000.0]

    def loss(strength: float) -> float:
        total = 0.0
        for out in range(6):
            inside = np.array(groups) != out
            model = ml.ridge(x[inside].tolist(), y[inside].tolist(), strength)
            total += float(((np.array(ml.predict(model, x[~inside].tolist())) - y[~inside]) ** 2).sum())
        return total

    assert ml.ridge_cv(x.tolist(), y.tolist(), groups, strengths)["strength"] == min(strengths, key=loss)


def test_a_signal_shared_by_groups_alone_asks_for_a_strong_penalty() -> None:
    """Within a group the target repeats, between groups it is noise: rows as folds would take the weakest penalty."""
    rng = np.random.default_rng(1)
    features = np.repeat(rng.normal(size=(6, 4)), 8, axis=0)
    targets = np.repeat(rng.normal(size=(6, 1)), 8, axis=0)

    grouped = ml.ridge_cv(features.tolist(), targets.tolist(), [k // 8 for k in range(48)], [0.01, 100.0])
    alone = ml.ridge_cv(features.tolist(), targets.tolist(), list(range(48)), [0.01, 100.0])

    assert (grouped["strength"], alone["strength"]) == (100.0, 0.01)


def test_a_single_group_takes_the_strongest_penalty() -> None:
    assert ml.ridge_cv([[1.0], [2.0]], [[1.0], [2.0]], [0, 0], [1.0, 5.0])["strength"] == 5.0


def test_clusters_far_apart_are_found_whatever_their_sizes() -> None:
    rng = np.random.default_rng(2)
    centres = np.eye(3)
    points = np.concatenate([centres[k] + rng.normal(0, 0.05, (size, 3)) for k, size in enumerate((5, 40, 12))])

    found = np.array(ml.kmeans(points.tolist(), 3))

    assert sorted(np.argmax(found, axis=1)) == [0, 1, 2]
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)


def test_fewer_points_than_clusters_and_points_without_a_direction() -> None:
    assert len(ml.kmeans([[1.0, 0.0], [0.0, 1.0]], 5)) == 2
    assert ml.kmeans([[0.0, 0.0]], 2) == [[0.0, 0.0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda: ml.ridge([], [], 1.0),
        lambda: ml.ridge([[1.0]], [[1.0], [2.0]], 1.0),
        lambda: ml.ridge_cv([[1.0]], [[1.0]], [0], []),
        lambda: ml.ridge_cv([[1.0]], [[1.0]], [0, 1], [1.0]),
    ],
)
def test_rows_that_do_not_agree_are_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=r"rows|ridge_cv"):
        call()
