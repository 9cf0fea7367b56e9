"""The families: how a member of a policy learns and what it expects, written from its genes.

A family writes two functions, ``learn_x(rows, table, ctx)`` and ``gains_x(model, q, size)``, where ``x`` tells the members of
one policy apart. They call the functions of ``parts``.
"""

from collections.abc import Callable, Mapping

from mesa_pipeline.search.proposers.templates.cues import CUES, INTENTS
from mesa_pipeline.search.proposers.templates.genome import Gene
from mesa_pipeline.subsets import STRUCTURE_CODES

Genes = Mapping[str, Gene]
_STRUCTURES = list(STRUCTURE_CODES)
_CELLS = {
    "domain": 'label(q, "domain")',
    "task": 'label(q, "task_type")',
    "capability": 'label(q, "qa_type")',
    "domain x anchor": 'label(q, "domain") + "/" + anchor(q)',
    "anchor": "anchor(q)",
    "kind": "anchor_kind(q, {wide})",
    "place": "anchor_place(q)",
    "order": "order_words(q)",
    "length": "length_class(q, 30, 120)",
    "wording": "wording(q, 25)",
    "intent": "intent(q, INTENTS)",
    "context": "context(contexts, q, {sources})",
}
LABEL_KEYS = frozenset({"domain", "task", "capability", "domain x anchor"})
"""Cells and number sets that tell nothing where the benchmark's labels are not known."""

_NUMBERS = {
    "previews": f"preview_numbers(q, {_STRUCTURES})",
    "overlaps": f"overlap_numbers(q, {_STRUCTURES})",
    "question": "question_numbers(q)",
    "cues": "[float(shown) for shown in cue_tests(q, CUES)]",
}


def write_cells(x: str, genes: Genes) -> str:
    """Additive shrunk effects of the cells named in ``keys``; with ``caution``, less the doubt about leaving the best one."""
    gains = f'cell_effects(model["effects"], cells_{x}(q, model["contexts"]), size)'
    doubt = ', "caution": learn_caution(table)' if genes.get("caution") else ""
    if doubt:
        gains = f'cautious({gains}, model["caution"], {genes["caution"]!r})'
    return f"""{_cells(x, genes)}
def learn_{x}(rows, table, ctx):
    contexts = {_contexts(genes)}
    places = [cells_{x}(row, contexts) for row in rows]
    effects = learn_cells(places, table, left_over(table, table["start"]))
    return {{"effects": effects, "contexts": contexts{doubt}}}


def gains_{x}(model, q, size):
    return {gains}
"""


def write_credit(x: str, genes: Genes) -> str:
    """Credit of each structure by the cells named in ``keys``, counted as far as it is certain."""
    own = {name: genes[name] for name in ("top", "caution")}
    return f"""{_cells(x, genes)}
def learn_{x}(rows, table, ctx):
    contexts = {_contexts(genes)}
    model = learn_credit([cells_{x}(row, contexts) for row in rows], table, ctx, {own!r})
    found = [predict_credit(model, cells_{x}(row, contexts), {own!r}) for row in rows]
    usual = [mean_of(column) for column in zip(*found)]
    return {{"credit": model, "contexts": contexts, "usual": usual}}


def gains_{x}(model, q, size):
    found = predict_credit(model["credit"], cells_{x}(q, model["contexts"]), {own!r})
    return [gain - usual for gain, usual in zip(found, model["usual"])]
"""


def write_rules(x: str, genes: Genes) -> str:
    """A decision list over the cues of the groups named."""
    cues = [pattern for group in _names(genes["cues"]) for pattern in CUES[group]]
    own = {name: genes[name] for name in ("rules", "support")}
    return f"""
CUES_{x} = [
{_lines(cues)}
]


def learn_{x}(rows, table, ctx):
    return learn_rules([cue_tests(row, CUES_{x}) for row in rows], table, {own!r})


def gains_{x}(model, q, size):
    return rule_effects(model, cue_tests(q, CUES_{x}), size)
"""


def write_neighbours(x: str, genes: Genes) -> str:
    """The nearest training questions by the words of the sources named."""
    own = {"sources": list(str(genes["sources"])), "k": genes["k"], "pull": genes["pull"]}
    return f"""
NEAREST_{x} = {own!r}


def learn_{x}(rows, table, ctx):
    return learn_neighbours(rows, table, NEAREST_{x})


def gains_{x}(model, q, size):
    return predict_neighbours(model, q, size, NEAREST_{x})
"""


def write_stumps(x: str, genes: Genes) -> str:
    """A sum of gates on the numbers named."""
    own = {name: genes[name] for name in ("rounds", "rate")}
    return f"""{_numbers(x, genes)}
def learn_{x}(rows, table, ctx):
    return learn_stumps([numbers_{x}(row) for row in rows], table, {own!r})


def gains_{x}(model, q, size):
    return stump_effects(model, numbers_{x}(q), size)
"""


def write_factored(x: str, genes: Genes) -> str:
    """Worth of structures and pairs as linear functions of the numbers and labels named."""
    labels = ["domain", "qa_type"] if genes["labels"] else []
    own = {"labels": labels, "pairs": genes["pairs"], "strengths": [3.0, 10.0, 30.0, 100.0, 300.0]}
    return f"""{_numbers(x, genes)}
UTILITY_{x} = {own!r}


def learn_{x}(rows, table, ctx):
    return learn_factored([numbers_{x}(row) for row in rows], rows, table, ctx, UTILITY_{x})


def gains_{x}(model, q, size):
    return predict_factored(model, numbers_{x}(q), q)
"""


def write_coverage(x: str, genes: Genes) -> str:
    """What subsets cover and say twice."""
    own = {"pairs": genes["pairs"], "trust": genes["trust"], "strengths": [10.0, 100.0, 1000.0]}
    return f"""
COVERAGE_{x} = {own!r}


def learn_{x}(rows, table, ctx):
    return {{"cover": learn_coverage(rows, table, ctx, COVERAGE_{x}), "start": table["start"]}}


def gains_{x}(model, q, size):
    return predict_coverage(model["cover"], q, model["start"], COVERAGE_{x})
"""


FAMILIES: Mapping[str, Callable[[str, Genes], str]] = {
    "cells": write_cells,
    "credit": write_credit,
    "rules": write_rules,
    "neighbours": write_neighbours,
    "stumps": write_stumps,
    "factored": write_factored,
    "coverage": write_coverage,
}


def _cells(x: str, genes: Genes) -> str:
    values = {"wide": genes.get("wide", 3), "sources": list(str(genes.get("sources", "")))}
    keys = _names(genes["keys"])
    expressions = [_CELLS[key].format(**values).replace("INTENTS", f"INTENTS_{x}") for key in keys]
    lexicon = f"\nINTENTS_{x} = {{\n{_entries(INTENTS)}\n}}\n\n" if "intent" in keys else ""
    return f"""{lexicon}
def cells_{x}(q, contexts):
    return [{", ".join(expressions)}]

"""


def _contexts(genes: Genes) -> str:
    if "context" not in _names(genes["keys"]):
        return "{}"
    return f"learn_contexts(rows, {list(str(genes['sources']))!r}, {genes['clusters']!r})"


def _numbers(x: str, genes: Genes) -> str:
    names = _names(genes["numbers"])
    cues = [pattern for patterns in CUES.values() for pattern in patterns]
    constant = f"\nCUES_{x} = [\n{_lines(cues)}\n]\n\n" if "cues" in names else ""
    expression = " + ".join(_NUMBERS[name].replace("CUES", f"CUES_{x}") for name in names)
    return f"""{constant}
def numbers_{x}(q):
    return {expression}

"""


def _names(gene: Gene) -> tuple[str, ...]:
    assert isinstance(gene, tuple)
    return gene


def _lines(values: list[str]) -> str:
    return "\n".join(f"    {value!r}," for value in values)


def _entries(values: Mapping[str, str]) -> str:
    return "\n".join(f"    {key!r}: {value!r}," for key, value in values.items())
