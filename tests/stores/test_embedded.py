import numpy as np
import pytest

from mesa_pipeline.stores.embedded import ArrayVectorIndex, best_matches, inner_products


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


@pytest.mark.parametrize("dimensions", [1, 3, 384, 1025])
def test_a_score_is_the_same_whichever_rows_are_scored_beside_it(dimensions):
    generator = np.random.default_rng(1)
    vectors = (generator.normal(size=(300, dimensions)) * 1e6).astype(np.float32)
    query = generator.normal(size=dimensions).astype(np.float32)
    scores = inner_products(vectors, query)
    for rows in (generator.permutation(300)[:77], np.array([299]), np.arange(1, 300)):
        assert (inner_products(vectors[rows], query) == scores[rows]).all()


def test_the_best_are_the_same_in_whatever_order_they_come():
    positions, scores = np.array([5, 2, 9, 0]), np.array([0.5, 0.25, 0.5, 0.25])
    assert best_matches(positions, scores, 3) == [(5, 0.5), (9, 0.5), (0, 0.25)]
    assert best_matches(positions[::-1], scores[::-1], 3) == [(5, 0.5), (9, 0.5), (0, 0.25)]


def test_no_score_is_a_negative_zero():
    assert np.signbit(inner_products(np.array([[-1e-9], [-0.0]], dtype=np.float32), np.ones(1, dtype=np.float32))).sum() == 0
