"""When something happened, told on a dated occasion: "yesterday", said on 8 May 2023, was 7 May 2023."""

import calendar
import re
from collections.abc import Callable
from datetime import date, timedelta

MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
COUNTING = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBERS = {word: number for number, word in enumerate(COUNTING, start=1)} | {"a": 1, "an": 1, "couple of": 2, "a couple of": 2}
_MONTH = "|".join(MONTHS)
_WEEKDAY = "|".join(name.lower() for name in calendar.day_name)
_COUNT = r"(\d{1,3}|a couple of|couple of|" + "|".join(NUMBERS) + r"|a few|few)"
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH}),? (\d{{4}})\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b", re.IGNORECASE)
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})(?!\d)")
_NEAR_DAYS = {"yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "this morning": 0, "tomorrow": 1}
_NEAR = re.compile(rf"\b({'|'.join(_NEAR_DAYS)})\b", re.IGNORECASE)
_AGO = re.compile(rf"\b{_COUNT} (day|week|weekend|month|year)s? ago\b", re.IGNORECASE)
_SHIFTED = re.compile(rf"\b(last|next|this|past|previous) (week|weekend|month|year|{_WEEKDAY})\b", re.IGNORECASE)
_IN_MONTH = re.compile(rf"\b(?:in|since|until|by|of) ({_MONTH})\b(?! \d)", re.IGNORECASE)


def find_date(text: str) -> date | None:
    """The first calendar date written in a text, such as "1:56 pm on 8 May, 2023" or "2023-05-08"."""
    for pattern, order in ((_DAY_FIRST, (3, 2, 1)), (_MONTH_FIRST, (3, 1, 2)), (_ISO, (1, 2, 3))):
        match = pattern.search(text)
        if match:
            year, month, day = (match[group] for group in order)
            return _date(int(year), MONTHS.get(month.lower()) or int(month), int(day))
    return None


def tell_when(text: str, said: date) -> str:
    """When the text says that something happens, in calendar terms; the day it was said where it names no other.

    What cannot be pinned to a day stays as vague as it was told: "last week" is "the week before 8 May 2023".
    """
    resolvers: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], str]], ...] = (
        (_NEAR, _resolve_near),
        (_AGO, _resolve_ago),
        (_SHIFTED, _resolve_shifted),
        (_IN_MONTH, _resolve_month),
    )
    found = [(match.start(), resolve(match, said)) for pattern, resolve in resolvers if (match := pattern.search(text))]
    return min(found)[1] if found else format_day(said)


def format_day(day: date) -> str:
    """A date as in "8 May 2023"."""
    return f"{day.day} {calendar.month_name[day.month]} {day.year}"


def _resolve_near(match: re.Match[str], said: date) -> str:
    return format_day(_shift_days(said, _NEAR_DAYS[match[1].lower()]))


def _resolve_ago(match: re.Match[str], said: date) -> str:
    count, unit = match[1].lower(), match[2].lower()
    number = int(count) if count.isdigit() else NUMBERS.get(count)
    if number is None:
        return f"a few {unit}s before {format_day(said)}"
    if unit == "day":
        return format_day(_shift_days(said, -number))
    if unit == "month":
        return _format_month(said, -number)
    if unit == "year":
        return str(said.year - number)
    return f"{count} {unit}{'s' * (number > 1)} before {format_day(said)}"


def _resolve_shifted(match: re.Match[str], said: date) -> str:
    direction, unit = match[1].lower(), match[2].lower()
    offset = {"next": 1, "this": 0}.get(direction, -1)
    if unit == "month":
        return _format_month(said, offset)
    if unit == "year":
        return str(said.year + offset)
    name = unit.capitalize() if unit not in ("week", "weekend") else f"the {unit}"
    return f"{name} {({-1: 'before', 0: 'of', 1: 'after'})[offset]} {format_day(said)}"


def _resolve_month(match: re.Match[str], said: date) -> str:
    return f"{match[1].capitalize()} {said.year}"


def _format_month(said: date, offset: int) -> str:
    months = said.year * 12 + said.month - 1 + offset
    return f"{calendar.month_name[months % 12 + 1]} {months // 12}"


def _shift_days(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return day


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
