"""Step records and their clipping."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.structures.records import clip, serialize_step
from mesa_pipeline.types import Step


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (Step(3, "left", "a wall"), "Step 3\nAction: left\nObservation: a wall"),
        (Step(0, "left", ""), "Step 0\nAction: left"),
        (Step(0, "", "a wall"), "Step 0\nObservation: a wall"),
        (Step(7, "", ""), "Step 7\n(no action, no observation)"),
        (Step(1, "{x}", "%s $y {0}"), "Step 1\nAction: {x}\nObservation: %s $y {0}"),
    ],
)
def test_absent_parts_are_left_out_and_text_stands_as_it_is(step: Step, expected: str) -> None:
    assert serialize_step(step) == (expected, False)


def test_a_long_record_keeps_head_and_tail() -> None:
    record = serialize_step(Step(5, "read", "H" * 1_100_000 + "T"), 8000)
    assert record.truncated
    assert len(record.text) <= 8000
    assert record.text.startswith("Step 5\nAction: read\nObservation: HHH")
    assert record.text.endswith("HT")
    assert "left out" in record.text


def test_a_record_of_exactly_the_limit_is_whole() -> None:
    assert clip("x" * 100, 100) == ("x" * 100, False)


@given(st.text(max_size=400), st.integers(100, 300))
def test_a_clipped_text_is_within_the_limit_and_keeps_both_ends(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    assert len(clipped.text) <= limit
    assert clipped.truncated == (len(text) > limit)
    assert clipped.text[:10] == text[:10]
    assert clipped.text[-5:] == text[-5:]
