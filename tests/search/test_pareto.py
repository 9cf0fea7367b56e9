"""The front against brute force, and what is read off it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.search.pareto import best_at, hypervolume, pareto_front
from tests.search.searches import entry, worth


def point(id: str, score: float, tokens: float):
    return entry(id, validation=worth(score, tokens, score=score))


def archive(points):
    return [point(f"{k + 1:02d}-explore", score / 16, 500.0 * tokens) for k, (score, tokens) in enumerate(points)]


POINTS = st.lists(st.tuples(st.integers(0, 16), st.integers(0, 8)), min_size=1, max_size=12)


def dominates(a, b) -> bool:
    at_least = a.validation.score >= b.validation.score and a.validation.tokens <= b.validation.tokens
    return at_least and (a.validation.score, a.validation.tokens) != (b.validation.score, b.validation.tokens)


@given(POINTS)
def test_the_front_is_what_nothing_dominates_each_point_once_cheapest_first(points):
    entries = archive(points)
    undominated = [e for e in entries if not any(dominates(other, e) for other in entries)]
    expected = {(e.validation.tokens, e.validation.score) for e in undominated}
    front = pareto_front(entries)
    assert [(e.validation.tokens, e.validation.score) for e in front] == sorted(expected)
    assert set(front) <= set(entries)


@given(POINTS, st.sampled_from([0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1.0]))
def test_at_any_price_the_best_is_the_argmax_and_stands_on_the_front(points, price):
    entries = archive(points)
    values = [e.validation.score - price * e.validation.tokens for e in entries]
    best = best_at(entries, price)
    assert best.validation.score - price * best.validation.tokens == pytest.approx(max(values), abs=1e-11)
    assert best_at(pareto_front(entries), price).validation == best.validation


def test_a_tie_goes_to_fewer_tokens_then_to_the_earliest():
    twins = [point("01-explore", 0.5, 20.0), point("02-explore", 0.5, 10.0), point("03-explore", 0.5, 10.0)]
    assert best_at(twins, 0.0).id == "02-explore"
    assert [e.id for e in pareto_front(twins)] == ["02-explore"]


def test_the_volume_by_hand():
    """(0.5, 20) rules from 20 to 60 and (0.75, 60) from 60 to 100: (0.5 x 40 + 0.75 x 40) / 100; the others are dominated."""
    entries = [point("01-explore", 0.5, 20.0), point("02-explore", 0.75, 60.0), point("03-explore", 0.4, 30.0)]
    assert hypervolume(entries, 100.0) == pytest.approx(0.5)
    assert hypervolume([*entries, point("04-explore", 1.0, 100.0)], 100.0) == pytest.approx(0.5)
    assert hypervolume(entries, 10.0) == 0.0
    assert hypervolume(entries, 0.0) == 0.0


@given(POINTS)
def test_the_volume_is_the_area_counted_cell_by_cell(points):
    entries, cells = archive(points), 0
    for tokens in range(8):
        for score in range(16):
            covering = (e for e in entries if e.validation.tokens <= 500.0 * tokens and e.validation.score >= (score + 1) / 16)
            cells += any(True for _ in covering)
    assert hypervolume(entries, 4000.0) == pytest.approx(cells / 128)
