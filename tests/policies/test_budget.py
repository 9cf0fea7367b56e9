"""Choosing within a token budget against trying every subset."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mesa_pipeline.policies.budget import NOTHING, choose_within, most_structures_of
from mesa_pipeline.subsets import ALL_SUBSETS, SINGLE_SUBSETS, encode

TOKENS = arrays(np.float64, (4, 31), elements=st.integers(0, 9).map(float))
WORTH = arrays(np.float64, (4, 31), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, -np.inf]))
WANTED = arrays(np.int64, (4,), elements=st.integers(0, 31))


def brute_force(wanted: int, worth: np.ndarray, tokens: np.ndarray, limit: int) -> int:
    """Every subset in turn, by the words of the docstring."""
    if wanted and tokens[wanted - 1] <= limit:
        return wanted
    empty = [mask for mask in SINGLE_SUBSETS if tokens[mask - 1] == 0]
    best, found = None, NOTHING
    for mask in ALL_SUBSETS:
        if tokens[mask - 1] > limit or worth[mask - 1] == -np.inf or any(mask & single for single in empty):
            continue
        key = (-worth[mask - 1], tokens[mask - 1], mask)
        if best is None or key < best:
            best, found = key, mask
    return found


@given(WANTED, WORTH, TOKENS, st.integers(0, 10))
def test_it_is_the_worthiest_that_fits(wanted, worth, tokens, limit):
    chosen = choose_within(wanted, worth, tokens, limit).tolist()
    assert chosen == [brute_force(*row, limit) for row in zip(wanted.tolist(), worth, tokens, strict=True)]


@given(WANTED, WORTH, TOKENS, st.integers(0, 10))
def test_the_budget_is_never_exceeded(wanted, worth, tokens, limit):
    for row, mask in enumerate(choose_within(wanted, worth, tokens, limit).tolist()):
        assert mask == NOTHING or tokens[row, mask - 1] <= limit


def test_a_structure_that_found_nothing_is_passed_over():
    """With G empty, T+G is the text of T: what T is worth counts, however much better T+G did elsewhere."""
    worth, tokens = np.zeros((1, 31)), np.full((1, 31), 100.0)
    tokens[0, encode("G") - 1] = 0
    for codes in ("T", "TG", "S", "SG"):
        tokens[0, encode(codes) - 1] = 5
    worth[0, encode("TG") - 1], worth[0, encode("S") - 1] = 1.0, 0.5
    assert choose_within(np.array([31]), worth, tokens, 10).tolist() == [encode("S")]


def test_an_outcome_never_swept_fits_nothing():
    tokens = np.full((1, 31), np.nan)
    assert choose_within(np.array([3]), np.ones((1, 31)), tokens, 10).tolist() == [NOTHING]


def test_where_nothing_is_known_the_most_of_what_is_wanted_counts():
    worth = most_structures_of(encode("STV"))
    assert worth[encode("STV") - 1] == 3
    assert worth[encode("SV") - 1] == 2
    assert worth[encode("G") - 1] == worth[encode("SG") - 1] == -np.inf
