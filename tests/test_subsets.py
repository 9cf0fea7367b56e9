import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline import subsets
from mesa_pipeline.errors import PolicyError


def test_there_are_31_subsets_of_five_structures():
    assert len(subsets.ALL_SUBSETS) == 2**5 - 1
    assert subsets.decode(subsets.FULL_SUBSET) == ("S", "T", "G", "V", "R")


@given(st.sampled_from(subsets.ALL_SUBSETS))
def test_decode_undoes_encode(mask):
    assert subsets.encode(subsets.decode(mask)) == mask
    assert len(subsets.decode(mask)) == subsets.size(mask)


def test_encode_ignores_order_and_duplicates():
    assert subsets.encode(["R", "S", "R"]) == subsets.encode(["S", "R"])
    assert subsets.label(subsets.encode("RS")) == "S+R"


@pytest.mark.parametrize("bad", [[], ["X"], ["s"], ["Ｓ"], ["S", ""]])
def test_encode_refuses_what_is_not_a_selection(bad):
    with pytest.raises(PolicyError):
        subsets.encode(bad)


@pytest.mark.parametrize("bad", [0, 32, -1])
def test_decode_refuses_what_is_not_a_subset(bad):
    with pytest.raises(PolicyError):
        subsets.decode(bad)


def test_prefix_order_visits_every_subset_after_the_one_it_extends():
    order = subsets.prefix_order()
    assert sorted(order) == list(subsets.ALL_SUBSETS)
    sections = [[code for code in subsets.COMPOSE_ORDER if code in subsets.decode(mask)] for mask in order]
    for position, current in enumerate(sections):
        if len(current) > 1:
            assert current[:-1] in sections[:position]
