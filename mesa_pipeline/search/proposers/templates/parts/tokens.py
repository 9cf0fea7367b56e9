"""What the evidence of a question is going to cost, from its previews."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any

import math


def token_ratios(rows, table, ctx):
    """Tokens of each subset as a share of the sum over its structures read alone: sections shared are counted once."""
    ratios = []
    for k in table["arms"]:
        alone = [2 ** ctx["structures"].index(name) - 1 for name in ctx["subsets"][k]]
        apart = math.fsum(row["tok"][j] for row in rows for j in alone)
        ratios.append(math.fsum(row["tok"][k] for row in rows) / apart if apart else 1.0)
    return ratios


def tokens_ahead(state, ratios, q):
    """Expected tokens of each subset for this question; the training mean where a preview is missing."""
    sizes = {name: preview["tokens"] for name, preview in q["previews"].items()}
    return [
        ratios[k] * sum(sizes[name] for name in names) if all(name in sizes for name in names) else state["tokens"][k]
        for k, names in enumerate(state["subsets"])
    ]
