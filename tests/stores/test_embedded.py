import numpy as np
import pytest

from mesa_pipeline.stores.embedded import ArrayVectorIndex


def brute_force(vectors: np.ndarray, query: np.ndarray, k: int) -> list[int]:
    scores = [round(float(np.dot(vector.astype(np.float64), query.astype(np.float64))), 6) for vector in vectors]
    return sorted(range(len(scores)), key=lambda position: (-scores[position], position))[:k]


@pytest.mark.parametrize("k", [1, 5, 40, 100])
def test_search_agrees_with_brute_force(k):
    generator = np.random.default_rng(0)
    vectors = generator.integers(-3, 4, size=(40, 6)).astype(np.float32)
    queries = generator.integers(-3, 4, size=(7, 6)).astype(np.float32)
    found = ArrayVectorIndex(vectors).search(queries, k)
    assert [[match.position for match in matches] for matches in found] == [brute_force(vectors, query, k) for query in queries]


def test_scores_are_inner_products():
    index = ArrayVectorIndex(np.array([[0.6, 0.8], [1.0, 0.0]], dtype=np.float32))
    (matches,) = index.search(np.array([[0.0, 1.0]], dtype=np.float32), 2)
    assert matches[0].position == 0
    assert matches[0].score == pytest.approx(0.8)
    assert matches[1].score == pytest.approx(0.0)


def test_ties_and_rounding_noise_go_to_the_lower_position():
    row = np.array([0.6, 0.8], dtype=np.float32)
    noisy = row + np.float32(1e-7)
    (matches,) = ArrayVectorIndex(np.stack([row, noisy, row])).search(row[None, :], 3)
    assert [match.position for match in matches] == [0, 1, 2]


def test_no_queries_give_no_lists():
    assert ArrayVectorIndex(np.ones((3, 2), dtype=np.float32)).search(np.zeros((0, 2), dtype=np.float32), 5) == []
