"""What each structure adds, by kind of question, counted only as far as it is certain."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any
# ruff: noqa: B905

import math
import statistics


def learn_credit(places, table, ctx, genes):
    """For each kind of cell, by structure: the shrunk mean of what adding it changed, and its error over episodes.

    With ``top`` the change is from the other four to all five, else the mean over all subsets without it.
    """
    changes = [changes_of(line, ctx["structures"], genes["top"]) for line in table["all"]]
    members = {}
    for row, cells in enumerate(places):
        for cell in ["", "/".join(cells)]:
            members.setdefault(cell, []).append(row)
    credit = {cell: credit_of(rows, changes, table) for cell, rows in sorted(members.items())}
    has = [[1.0 if name in ctx["subsets"][k] else 0.0 for name in ctx["structures"]] for k in table["arms"]]
    return {"credit": credit, "has": has}


def changes_of(values, structures, top):
    """Mean change of value from adding each structure."""
    changes = []
    for bit in range(len(structures)):
        without = [mask for mask in range(1, len(values) + 1) if not mask >> bit & 1]
        kept = [max(without)] if top else without
        changes.append(math.fsum(values[(mask | 1 << bit) - 1] - values[mask - 1] for mask in kept) / len(kept))
    return changes


def credit_of(rows, changes, table):
    """Shrunk mean and standard error, over episodes, of each structure's changes."""
    episodes = {}
    for row in rows:
        episodes.setdefault(table["groups"][row], []).append(row)
    kept = len(rows) / (len(rows) + table["shrinkage"])
    found = []
    for bit in range(len(changes[0])):
        means = [math.fsum(changes[row][bit] for row in group) / len(group) for group in episodes.values()]
        error = statistics.stdev(means) / math.sqrt(len(means)) if len(means) > 1 else abs(means[0])
        found.append([kept * math.fsum(changes[row][bit] for row in rows) / len(rows), kept * error])
    return found


def predict_credit(model, cells, genes):
    """Sum, over the structures of each subset, of the credit that remains after ``caution`` errors are taken from it."""
    own = model["credit"].get("/".join(cells))
    wide = model["credit"].get("", [])
    credit = [[(a + b) / 2 for a, b in zip(pair, other)] for pair, other in zip(own or wide, wide)]
    worth = [math.copysign(max(0.0, abs(mean) - genes["caution"] * error), mean) for mean, error in credit]
    return [math.fsum(h * w for h, w in zip(line, worth)) for line in model["has"]]
