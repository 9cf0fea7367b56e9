"""Leaving the robust choice only where the gain is beyond doubt."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any
# ruff: noqa: B905

import math
import statistics


def learn_caution(table):
    """The subset that is best on average, and the error of each other subset's advantage over it, over episodes."""
    robust = max(range(len(table["worth"])), key=lambda k: (round(table["worth"][k], 9), -k))
    episodes = {}
    for line, group in zip(table["values"], table["groups"]):
        episodes.setdefault(group, []).append(line)
    errors = []
    for k in range(len(table["arms"])):
        means = [math.fsum(line[k] - line[robust] for line in lines) / len(lines) for lines in episodes.values()]
        errors.append(statistics.stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0)
    return {"robust": robust, "errors": errors}


def cautious(values, model, caution):
    """Values less ``caution`` errors of their advantage over the robust choice."""
    return [value - caution * error for value, error in zip(values, model["errors"])]
