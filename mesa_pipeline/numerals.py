"""How numbers look wherever a person reads them: in reports, logs and the tracker's pages."""

import math

ABSENT = "–"


def number(value: float, decimals: int = 0, signed: bool = False) -> str:
    """Thousands separated, a true minus sign, and a dash where there is no value."""
    if not math.isfinite(value):
        return ABSENT
    rounded = round(value, decimals) + 0.0  # turns a negative zero into zero
    text = f"{rounded:{'+' if signed and rounded else ''},.{decimals}f}"
    return text.replace("-", "−")


def score(value: float, decimals: int = 2) -> str:
    """A score in [0, 1] times a hundred."""
    return number(100 * value, decimals)


def difference(value: float, decimals: int = 2) -> str:
    """A difference of scores times a hundred, with its sign."""
    return number(100 * value, decimals, signed=True)


def interval(low: float, high: float) -> str:
    """Both ends of an interval of score differences."""
    return f"{difference(low)} to {difference(high)}" if math.isfinite(low) and math.isfinite(high) else ABSENT


def percent(share: float, decimals: int = 0) -> str:
    """A share in [0, 1] as a percentage."""
    return f"{number(100 * share, decimals)}%" if math.isfinite(share) else ABSENT


def seconds(value: float) -> str:
    """A duration with three digits or so."""
    return number(value, 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 4)


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"


def confidence(level: float) -> str:
    """An interval's confidence, such as ``95%``."""
    return f"{100 * level:g}%"
