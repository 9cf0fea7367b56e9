"""What a subset covers that none of its structures covers alone, and what it says twice."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any
# ruff: noqa: B905

import math
import re

from mesa_pipeline.policies.sandbox import ml
from mesa_pipeline.search.proposers.templates.parts.factored import parts_of
from mesa_pipeline.search.proposers.templates.parts.questions import named_steps


def glimpses(q, structures):
    """For each structure: the question's words in its preview, the steps it holds, and its tokens."""
    asked = set(re.findall(r"[a-z0-9_]{2,24}", q["question"][:4000].lower()))
    seen = {name: q["previews"][name] for name in structures if name in q["previews"]}
    words = {name: asked & set(re.findall(r"[a-z0-9_]{2,24}", p["text"].lower())) for name, p in seen.items()}
    steps = {name: set(p["step_ids"]) for name, p in seen.items()}
    tokens = {name: p["tokens"] for name, p in seen.items()}
    return {"asked": asked, "words": words, "steps": steps, "tokens": tokens, "named": set(named_steps(q))}


def coverage_numbers(glimpse, names, structures, pairs):
    """Share of words and named steps covered, steps brought, share said twice, tokens, and which structures (and pairs)."""
    words = set().union(*(glimpse["words"].get(name, set()) for name in names))
    steps = set().union(*(glimpse["steps"].get(name, set()) for name in names))
    brought = sum(len(glimpse["steps"].get(name, ())) for name in names)
    named = glimpse["named"]
    return [
        len(words) / max(1, len(glimpse["asked"])),
        len(steps & named) / len(named) if named else 0.0,
        math.log1p(len(steps)),
        1.0 - len(steps) / brought if brought else 0.0,
        math.log1p(sum(glimpse["tokens"].get(name, 0) for name in names)) / 4.0,
        1.0 if any(glimpse["tokens"].get(name, 0) > 0 for name in names) else 0.0,
        *parts_of(names, structures, pairs),
    ]


def learn_coverage(rows, table, ctx, genes):
    """Ridge regression of what subsets gain on what they cover, over all questions and subsets at once."""
    inputs, targets, groups = [], [], []
    for row, line in zip(rows, table["all"]):
        glimpse = glimpses(row, ctx["structures"])
        for names, value in zip(ctx["subsets"], line):
            inputs.append(coverage_numbers(glimpse, names, ctx["structures"], genes["pairs"]))
            targets.append([value])
            groups.append(row["group"])
    model = ml.ridge_cv(inputs, targets, groups, genes["strengths"])
    return {"model": model, "structures": ctx["structures"], "names": [ctx["subsets"][k] for k in table["arms"]]}


def predict_coverage(model, q, start, genes):
    """Expected value of what each subset covers, less its average over training questions."""
    glimpse = glimpses(q, model["structures"])
    inputs = [coverage_numbers(glimpse, names, model["structures"], genes["pairs"]) for names in model["names"]]
    expected = [line[0] for line in ml.predict(model["model"], inputs)]
    return [genes["trust"] * (value - usual) for value, usual in zip(expected, start)]
