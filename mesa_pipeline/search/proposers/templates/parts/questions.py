"""Cells and numbers read off a question and its labels."""

# Quoted into the sources of policies, whose language has no types and is kept plain.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs, no-warn-return-any

import re


def label(q, name):
    """A label of the benchmark; empty where there is none."""
    return q["meta"].get(name, "")


def named_steps(q):
    """Numbers of the steps or turns that the question names, in order, each end of a range by itself."""
    one = r"\b(?:steps?|turns?|actions?|observations?)\s*#?\s*(\d{1,6})"
    other = r"(?:\s*(?:-|to|through|and|until|,)\s*(?:step\s*)?(\d{1,6}))?"
    return [int(n) for pair in re.findall(one + other, q["question"][:4000].lower()) for n in pair if n]


def anchor(q):
    """Whether the question names a step."""
    return "named" if named_steps(q) else "none"


def anchor_kind(q, wide):
    """How the question is tied to steps: not at all, to one, to several, or to a span wider than ``wide``."""
    steps = named_steps(q)
    if not steps:
        return "none"
    width = max(steps) - min(steps)
    return "wide" if width > wide else "several" if width else "one"


def anchor_place(q):
    """In which third of the trajectory the first step named lies."""
    steps = named_steps(q)
    share = steps[0] / max(1, q["steps"]) if steps else -1.0
    return "none" if share < 0 else "early" if share < 0.34 else "middle" if share < 0.67 else "late"


def order_words(q):
    """Which words of order the question uses."""
    text = q["question"][:4000].lower()
    if re.search(r"\b(?:before|prior|preced\w*)\b", text):
        return "before"
    if re.search(r"\b(?:after|follow\w*|next|subsequent\w*)\b", text):
        return "after"
    return "ends" if re.search(r"\b(?:first|last|final\w*|initial\w*)\b", text) else "none"


def length_class(q, short, long):
    """Length of the trajectory."""
    return "short" if q["steps"] <= short else "long" if q["steps"] > long else "middle"


def wording(q, words):
    """Length of the question."""
    return "brief" if len(q["question"][:4000].split()) <= words else "full"


def intent(q, lexicon):
    """What is asked for, by the most cues; the first in order where none or several lead."""
    text = q["question"][:4000].lower()
    scores = [len(re.findall(pattern, text)) for pattern in lexicon.values()]
    return list(lexicon)[scores.index(max(scores))] if any(scores) else "none"


def cue_tests(q, cues):
    """For each cue, whether the question shows it."""
    text = q["question"][:4000].lower()
    return [re.search(pattern, text) is not None for pattern in cues]
