import pytest

from mesa_pipeline import numerals


@pytest.mark.parametrize(
    ("value", "decimals", "signed", "expected"),
    [
        (1234.5, 0, False, "1,234"),
        (-0.001, 2, True, "0.00"),
        (-1.5, 1, True, "−1.5"),
        (1.5, 1, True, "+1.5"),
        (float("nan"), 2, False, "–"),
        (float("inf"), 2, False, "–"),
    ],
)
def test_numbers(value: float, decimals: int, signed: bool, expected: str) -> None:
    assert numerals.number(value, decimals, signed) == expected


def test_scores_are_shown_times_a_hundred() -> None:
    assert numerals.score(0.31249) == "31.25"
    assert numerals.difference(0.0105) == "+1.05"
    assert numerals.interval(-0.01, 0.02) == "−1.00 to +2.00"
    assert numerals.interval(float("nan"), 0.02) == "–"
