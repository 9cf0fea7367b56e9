from datetime import date

import pytest

from mesa_pipeline.reading.relative_dates import find_date, tell_when

SAID = date(2023, 5, 8)


@pytest.mark.parametrize(
    "text", ["1:56 pm on 8 May, 2023", "May 8, 2023", "2023-05-08T13:56", "the 8th of May 2023", "8 may 2023"]
)
def test_dates_are_found(text):
    assert find_date(text) == SAID


@pytest.mark.parametrize("text", ["", "no date", "31 February, 2023", "99 May, 2023", "2023-13-40", "8 May", "0 May, 0000"])
def test_what_is_no_date_is_none(text):
    assert find_date(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I went to a support group yesterday", "7 May 2023"),
        ("We leave tomorrow!", "9 May 2023"),
        ("Two days ago I fell", "6 May 2023"),
        ("I fell 2 days ago", "6 May 2023"),
        ("a few days ago", "a few days before 8 May 2023"),
        ("last Saturday was fun", "Saturday before 8 May 2023"),
        ("next week", "the week after 8 May 2023"),
        ("last weekend", "the weekend before 8 May 2023"),
        ("three weeks ago", "three weeks before 8 May 2023"),
        ("last month", "April 2023"),
        ("five months ago", "December 2022"),
        ("next year", "2024"),
        ("ten years ago", "2013"),
        ("the show is in July", "July 2023"),
        ("nothing of the kind", "8 May 2023"),
        ("yesterday I planned next year", "7 May 2023"),
    ],
)
def test_relative_times_become_calendar_terms(text, expected):
    assert tell_when(text, SAID) == expected


@pytest.mark.parametrize("said", [date.min, date.max])
@pytest.mark.parametrize(
    "text", ["yesterday", "tomorrow", "999 days ago", "999 years ago", "999 months ago", "last month", "next month"]
)
def test_the_ends_of_the_calendar_raise_nothing(text, said):
    assert tell_when(text, said)
