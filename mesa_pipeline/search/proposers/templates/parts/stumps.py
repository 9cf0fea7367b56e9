"""A sum of gates, each a threshold on one number, found one after another."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any
# ruff: noqa: B905

import math

from mesa_pipeline.search.proposers.templates.parts.cells import left_over


def learn_stumps(numbers, table, genes):
    """Gates added one by one: the number and threshold whose two sides differ most in what their subsets gain.

    A side of n rows keeps n / (n + shrinkage) of its mean; each gate is taken in part (``rate``).
    """
    residuals, stumps = left_over(table, table["start"]), []
    candidates = [
        (j, cut) for j in range(len(numbers[0]) if numbers else 0) for cut in thresholds([line[j] for line in numbers])
    ]
    for _ in range(genes["rounds"] if candidates else 0):
        tried = [gate(j, cut, numbers, residuals, table) for j, cut in candidates]
        best = max(range(len(tried)), key=lambda c: (round(tried[c]["drop"], 9), -c))
        if tried[best]["drop"] <= 0:
            break
        stump = {name: tried[best][name] for name in ("number", "cut")}
        stump["sides"] = [[genes["rate"] * v for v in side] for side in tried[best]["sides"]]
        stumps.append(stump)
        sides = [stump["sides"][line[stump["number"]] > stump["cut"]] for line in numbers]
        residuals = [[r - v for r, v in zip(line, side)] for line, side in zip(residuals, sides)]
    return stumps


def thresholds(values):
    """Up to three cuts between different values, at the quarters."""
    ordered = sorted(values)
    cuts = {ordered[len(ordered) * part // 4] for part in (1, 2, 3)}
    return sorted(cut for cut in cuts if cut < ordered[-1])


def gate(j, cut, numbers, residuals, table):
    """The shrunk means on both sides of a threshold, and how much of the squared residuals they explain."""
    sides, drop = [], 0.0
    for above in (False, True):
        rows = [i for i, line in enumerate(numbers) if (line[j] > cut) == above]
        sums = [math.fsum(column) for column in zip(*(residuals[i] for i in rows))] or [0.0] * len(table["arms"])
        kept = 1.0 / (len(rows) + table["shrinkage"])
        sides.append([kept * total for total in sums])
        episodes = len({table["groups"][i] for i in rows})
        drop += math.fsum(total * total for total in sums) * kept if episodes > 1 else -1.0
    return {"number": j, "cut": cut, "sides": sides, "drop": drop}


def stump_effects(stumps, numbers, size):
    """Sum over the gates of the side the question is on."""
    sides = [stump["sides"][numbers[stump["number"]] > stump["cut"]] for stump in stumps]
    return [math.fsum(side[k] for side in sides) for k in range(size)]
