"""What every template policy begins and ends with: the outcomes worth learning from, and the choice."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any
# ruff: noqa: B905

import math


def outcome_table(rows, ctx, choice):
    """Outcomes relative to each question's own level, and the few subsets worth choosing from.

    Choosing among all 31 by noisy estimates picks the luckiest, so only the best of them on average are kept.
    """
    price = choice["price"] * ctx["lambda"]
    values = [relative_values(row["y"]) for row in rows]
    tokens = [mean_of([row["tok"][k] for row in rows]) for k in range(len(ctx["subsets"]))]
    means = [mean_of([line[k] for line in values if line[k] is not None]) for k in range(len(tokens))]
    values = [[means[k] if value is None else value for k, value in enumerate(line)] for line in values]
    if not choice["seen_tokens"]:
        values = [[v - price * (t - tokens[30]) for v, t in zip(line, row["tok"])] for line, row in zip(values, rows)]
        means = [mean_of([line[k] for line in values]) for k in range(len(tokens))]
    worth = [means[k] - ctx["lambda"] * choice["seen_tokens"] * tokens[k] for k in range(len(tokens))]
    arms = short_list(worth, tokens, ctx, choice)
    return {
        "arms": arms,
        "values": [[line[k] for k in arms] for line in values],
        "all": values,
        "start": [means[k] for k in arms],
        "worth": [worth[k] for k in arms],
        "tokens": [tokens[k] for k in arms],
        "price": price * choice["seen_tokens"],
        "groups": [row["group"] for row in rows],
        "shrinkage": choice["shrinkage"] * ctx["shrinkage"],
    }


def relative_values(scores):
    """Scores less their mean; ``None`` stays."""
    level = mean_of([score for score in scores if score is not None])
    return [None if score is None else score - level for score in scores]


def mean_of(numbers):
    """The mean; 0 of nothing."""
    return math.fsum(numbers) / len(numbers) if numbers else 0.0


def short_list(worth, tokens, ctx, choice):
    """The best subsets on average among those small enough, as positions in ``ctx["subsets"]``."""
    small = [k for k, names in enumerate(ctx["subsets"]) if len(names) <= ctx["max_structures"]]
    cheap = [k for k in small if tokens[k] <= choice["share"] * tokens[30]]
    ranked = sorted(cheap or small, key=lambda k: (-round(worth[k], 12), tokens[k], k))
    return ranked[: choice["arms"]]


def fitted(table, models, ctx):
    """The state: what ``choose`` needs, beside the models."""
    plain = {name: table[name] for name in ("start", "worth", "tokens", "price")}
    return {**rounded(plain), "models": rounded(models), "subsets": [ctx["subsets"][k] for k in table["arms"]]}


def rounded(value):
    """The same JSON value with short numbers."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def choose(state, values, tokens):
    """The subset of highest value less token price; ties go to fewer tokens, then to the one that is better on average."""
    best = min(range(len(values)), key=lambda k: (-round(values[k] - state["price"] * tokens[k], 9), state["tokens"][k], k))
    return list(state["subsets"][best])
