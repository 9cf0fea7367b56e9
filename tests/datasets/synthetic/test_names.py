"""Supplies of names: unique for as long as one draws."""

from itertools import islice
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.datasets.synthetic.names import unique_identifiers, unique_names


def test_names_run_through_all_combinations_before_they_are_numbered() -> None:
    names = list(islice(unique_names(Random(1), "{}-{}{n}", "ab", "cd"), 8))
    assert sorted(names[:4]) == ["a-c", "a-d", "b-c", "b-d"]
    assert sorted(names[4:]) == ["a-c2", "a-d2", "b-c2", "b-d2"]


@given(st.integers())
def test_identifiers_never_repeat(seed: int) -> None:
    identifiers = list(islice(unique_identifiers(Random(seed), "E-"), 3000))
    assert len(set(identifiers)) == 3000
    assert all(identifier.startswith("E-") for identifier in identifiers)
