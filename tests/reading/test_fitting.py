"""Cutting evidence piece by piece: never too much, never more cut than needed, in the order of the original."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.reading.compose import HEADINGS
from mesa_pipeline.reading.fitting import compose_all, cut_to_fit, exact_tokens
from mesa_pipeline.types import ComposedEvidence, Evidence, EvidenceItem, Section


class CharacterCounter:
    """One token a character."""

    name = "characters"

    def count(self, text: str) -> int:
        return len(text)


COUNTER = CharacterCounter()
THREE = Evidence("V", (EvidenceItem("a" * 10, (1,), 0.2), EvidenceItem("b" * 10, (2,), 0.9), EvidenceItem("c" * 10, (3,), 0.5)))
HEADING = len(HEADINGS["V"]) + 2
ONE_PIECE = HEADING + 10 + 2  # heading, break, piece, break


def texts(evidence: Evidence) -> list[str]:
    return [item.text for item in evidence.items]


def test_all_that_fits_is_left_as_it_is():
    assert cut_to_fit(THREE, 10_000, COUNTER) is THREE


def test_pieces_go_by_score_and_stand_in_their_order():
    """Two whole pieces, b and c, leave room for no letter of a."""
    found = cut_to_fit(THREE, ONE_PIECE + 12, COUNTER)
    assert texts(found) == ["b" * 10, "c" * 10]
    assert found.truncated


def test_the_next_piece_is_cut_short_to_fill_the_room():
    found = cut_to_fit(THREE, ONE_PIECE + 6, COUNTER)
    assert texts(found) == ["b" * 10, "c" * 4]
    assert exact_tokens(compose_all({"V": found}, COUNTER), COUNTER) == ONE_PIECE + 6


def test_a_piece_cut_short_is_no_longer_the_record_of_its_step():
    whole = Evidence("T", (EvidenceItem("x" * 50, (4,), 1.0, is_record=True),))
    (item,) = cut_to_fit(whole, 40, COUNTER).items
    assert not item.is_record
    assert item.steps == (4,)


@pytest.mark.parametrize("limit", [0, 1, HEADING])
def test_where_not_a_letter_fits_nothing_is_left(limit):
    assert cut_to_fit(THREE, limit, COUNTER).is_empty


def test_what_is_read_beside_it_takes_its_room():
    beside = {"S": Evidence("S", (EvidenceItem("in short"),))}
    taken = exact_tokens(compose_all(beside, COUNTER), COUNTER)
    assert texts(cut_to_fit(THREE, taken + ONE_PIECE, COUNTER, beside)) == ["b" * 10]


def test_a_counter_that_does_not_add_up_is_asked_about_the_whole():
    class Whole(CharacterCounter):
        def count(self, text: str) -> int:
            return len(text) + 100 * text.count("## ") ** 2

    two = ComposedEvidence((Section("S", "## a\n\n", 106), Section("R", "## b\n\n", 106)))
    assert exact_tokens(two, Whole()) == 12 + 400


@given(
    st.lists(st.tuples(st.text(max_size=40), st.none() | st.floats(allow_nan=False, allow_infinity=False)), max_size=6),
    st.integers(0, 200),
)
def test_never_more_than_the_limit_whatever_the_text(pieces, limit):
    evidence = Evidence("G", tuple(EvidenceItem(text, (k,), score) for k, (text, score) in enumerate(pieces)))
    found = cut_to_fit(evidence, limit, COUNTER)
    assert exact_tokens(compose_all({"G": found}, COUNTER), COUNTER) <= limit
    assert [item.steps for item in found.items] == sorted(item.steps for item in found.items)
    for item in found.items:
        assert evidence.items[item.steps[0]].text.startswith(item.text)
