"""Numbers read off the previews of the evidence."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any

import itertools
import math
import re

from mesa_pipeline.search.proposers.templates.parts.questions import named_steps


def preview_numbers(q, structures):
    """For each structure: pieces, tokens (log), best score, gap to the second, share of the question's words, steps."""
    asked = set(re.findall(r"[a-z0-9_]{2,24}", q["question"][:4000].lower()))
    numbers = []
    for name in structures:
        preview = q["previews"].get(
            name, {"text": "", "n_items": 0, "tokens": 0, "top_score": None, "scores": [], "step_ids": []}
        )
        top, scores = preview["top_score"], preview["scores"]
        shared = asked & set(re.findall(r"[a-z0-9_]{2,24}", preview["text"].lower()))
        gap = (scores[0] - scores[1]) / (abs(scores[0]) + 1e-9) if len(scores) > 1 else 0.0
        numbers += [preview["n_items"], math.log1p(preview["tokens"]), -1.0 if top is None else top, gap]
        numbers += [len(shared) / max(1, len(asked)), len(set(preview["step_ids"]))]
    return [float(number) for number in numbers]


def overlap_numbers(q, structures):
    """For each pair of structures: share of the smaller one's steps that both have."""
    steps = {name: set(q["previews"][name]["step_ids"]) if name in q["previews"] else set() for name in structures}
    return [
        len(steps[a] & steps[b]) / max(1, min(len(steps[a]), len(steps[b]))) for a, b in itertools.combinations(structures, 2)
    ]


def question_numbers(q):
    """Steps named, width between them, length of question and trajectory (log), and numbers in the question."""
    steps = named_steps(q)
    width = max(steps) - min(steps) if steps else 0
    text = q["question"][:4000]
    sizes = [len(set(steps)), width, len(text), q["steps"], len(re.findall(r"\d+", text))]
    return [math.log1p(size) for size in sizes]
