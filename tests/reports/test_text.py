import pytest

from mesa_pipeline.reports import text


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
    assert text.number(value, decimals, signed) == expected


def test_scores_are_shown_times_a_hundred() -> None:
    assert text.score(0.31249) == "31.25"
    assert text.difference(0.0105) == "+1.05"
    assert text.interval(-0.01, 0.02) == "−1.00 to +2.00"
    assert text.interval(float("nan"), 0.02) == "–"


def test_a_clause_becomes_a_sentence() -> None:
    assert text.sentence("there was\nno champion") == "There was no champion."


def test_foreign_text_stays_on_one_printable_line() -> None:
    assert text.printable("a\x00b\ud800c\u202ed\n\n e") == "a\ufffdb\ufffdc\ufffdd e"
    assert text.printable("x" * 2_000_000) == "x" * (text.MAX_TEXT_CHARS - 1) + "…"
