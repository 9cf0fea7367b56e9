"""A decision list: the first test that holds decides."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any
# ruff: noqa: B905

import math


def learn_rules(outcomes, table, genes):
    """Rules added one by one, each time the test whose rows gain most from one subset of their own.

    ``outcomes[i]`` are the results of all tests on row i. A gain is shrunk by its number of rows, and counts only where it
    comes from more than one episode.
    """
    left, rules = list(range(len(outcomes))), []
    unused = list(range(len(outcomes[0]))) if outcomes else []
    default = best_of(table["start"])
    while unused and len(rules) < genes["rules"]:
        found = [rule_for(test, [i for i in left if outcomes[i][test]], default, table, genes) for test in unused]
        best = max(found, key=lambda rule: (round(rule["gain"], 9), -rule["test"]))
        if best["gain"] <= 0:
            break
        rules.append(best)
        unused.remove(best["test"])
        left = [i for i in left if not outcomes[i][best["test"]]]
    return rules


def rule_for(test, rows, default, table, genes):
    """The shrunk mean gains of the rows that reach a test, and what the best subset among them gains in all."""
    size = len(table["arms"])
    kept = 1.0 / (len(rows) + table["shrinkage"])
    values = [kept * math.fsum(table["values"][i][k] - table["start"][k] for i in rows) for k in range(size)]
    means = [s + v for s, v in zip(table["start"], values)]
    enough = len(rows) >= genes["support"] and len({table["groups"][i] for i in rows}) > 1
    gain = (means[best_of(means)] - means[default]) * len(rows) if enough else 0.0
    return {"test": test, "gain": gain, "values": values, "rows": len(rows)}


def best_of(values):
    """Position of the largest value; the first of equal ones."""
    return max(range(len(values)), key=lambda k: (round(values[k], 9), -k))


def rule_effects(rules, results, size):
    """The gains of the first rule whose test holds; none where no test does."""
    for rule in rules:
        if results[rule["test"]]:
            return rule["values"]
    return [0.0] * size
