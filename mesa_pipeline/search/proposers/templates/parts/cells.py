"""Additive effects of the cells a question falls into, each shrunk towards none."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any
# ruff: noqa: B905

import math


def learn_cells(places, table, residuals):
    """Effects of one kind of cell after another, each fitted to what those before leave unexplained.

    ``places[i]`` lists the cells of row i. A cell of n rows keeps n / (n + shrinkage) of its mean.
    """
    effects = []
    for kind in range(len(places[0]) if places else 0):
        members = {}
        for row, cells in enumerate(places):
            members.setdefault(cells[kind], []).append(row)
        effect = {}
        for cell, rows in sorted(members.items()):
            kept = 1.0 / (len(rows) + table["shrinkage"])
            effect[cell] = [kept * math.fsum(residuals[row][k] for row in rows) for k in range(len(table["arms"]))]
        residuals = [[v - e for v, e in zip(line, effect[places[row][kind]])] for row, line in enumerate(residuals)]
        effects.append(effect)
    return effects


def cell_effects(effects, cells, size):
    """Sum of the effects of a question's cells; a cell never seen in training has none."""
    found = [effect[cell] for effect, cell in zip(effects, cells) if cell in effect]
    return [math.fsum(effect[k] for effect in found) for k in range(size)]


def left_over(table, start):
    """What the average of each subset leaves to explain."""
    return [[v - s for v, s in zip(line, start)] for line in table["values"]]
