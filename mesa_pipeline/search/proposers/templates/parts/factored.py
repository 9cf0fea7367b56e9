"""What each structure and each pair of structures is worth, as linear functions of what can be seen of a question."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any
# ruff: noqa: B905

import itertools
import math

from mesa_pipeline.policies.sandbox import ml
from mesa_pipeline.search.proposers.templates.parts.questions import label


def learn_factored(numbers, rows, table, ctx, genes):
    """Ridge regression of the worth of structures (and pairs) on standardised numbers and labels.

    The worth of the parts comes from all 31 subsets of a question at once, which averages away much of their noise. Strength
    of the penalty by cross-validation over episodes.
    """
    scales = [scale_of(column) for column in zip(*numbers)]
    levels = {name: sorted({label(row, name) for row in rows} - {""}) for name in genes["labels"]}
    inputs = [inputs_of(line, row, scales, levels) for line, row in zip(numbers, rows)]
    design = [parts_of(names, ctx["structures"], genes["pairs"]) for names in ctx["subsets"]]
    parts = ml.ridge(design, list(zip(*table["all"])), 0.01)["coefficients"]
    model = ml.ridge_cv(inputs, list(zip(*parts)), [row["group"] for row in rows], genes["strengths"])
    arms = [design[k] for k in table["arms"]]
    return {"scales": scales, "levels": levels, "model": model, "design": arms}


def predict_factored(model, numbers, q):
    """Worth of the parts of each subset, less that of the average question."""
    inputs = inputs_of(numbers, q, model["scales"], model["levels"])
    parts = ml.predict(model["model"], [inputs])[0]
    usual = model["model"]["intercept"]
    return [math.fsum(d * (p - u) for d, p, u in zip(line, parts, usual)) for line in model["design"]]


def scale_of(column):
    """Mean and deviation of a number."""
    mean = math.fsum(column) / len(column)
    return [mean, math.sqrt(math.fsum((v - mean) ** 2 for v in column) / len(column)) or 1.0]


def inputs_of(numbers, q, scales, levels):
    """Numbers in deviations from their mean, within three, and one indicator for each known label value."""
    scaled = [max(-3.0, min(3.0, (v - mean) / deviation)) for v, (mean, deviation) in zip(numbers, scales)]
    known = [2.0 if label(q, name) == value else 0.0 for name, values in levels.items() for value in values]
    return [v / math.sqrt(max(1, len(scaled))) for v in scaled] + known


def parts_of(names, structures, pairs):
    """Indicators of the structures in a subset and, if wanted, of its pairs."""
    single = [1.0 if name in names else 0.0 for name in structures]
    return single + ([a * b for a, b in itertools.combinations(single, 2)] if pairs else [])
