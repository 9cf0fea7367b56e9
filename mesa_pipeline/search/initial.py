"""The policy every archive starts with."""

READ_EVERYTHING = """META = {"direction": "all", "hypothesis": "Reading everything misses nothing.", "parents": []}


def select(state, q):
    return ["S", "T", "G", "V", "R"]
"""
READ_BEST = """META = {"direction": "all", "hypothesis": "The best subset of those allowed suits all.", "parents": []}


def fit(rows, ctx):
    best, chosen = None, None
    for k, names in enumerate(ctx["subsets"]):
        values = [row["y"][k] - ctx["lambda"] * row["tok"][k] for row in rows if row["y"][k] is not None]
        if len(names) <= ctx["max_structures"] and values:
            mean = math.fsum(values) / len(values)
            if best is None or mean > best:
                best, chosen = mean, names
    return chosen or ctx["structures"][:1]


def select(state, q):
    return state
"""


def initial_source(max_structures: int) -> str:
    """The all-structure policy (Algorithm 1, line 2); where fewer may be read, the best fixed subset of those allowed."""
    return READ_EVERYTHING if max_structures == 5 else READ_BEST
