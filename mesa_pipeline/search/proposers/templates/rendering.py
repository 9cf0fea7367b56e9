"""Writing a genome as the source of a policy: the functions of ``parts`` that it needs, and a few lines that join them."""

import ast
import inspect
from collections.abc import Iterator, Sequence
from functools import cache
from types import ModuleType

from mesa_pipeline.search.proposers.templates.catalogue import CHOICE_GENES, TEMPLATES
from mesa_pipeline.search.proposers.templates.families import FAMILIES
from mesa_pipeline.search.proposers.templates.genome import Genome
from mesa_pipeline.search.proposers.templates.parts import (
    caution,
    cells,
    choice,
    coverage,
    credit,
    evidence,
    factored,
    neighbours,
    questions,
    rules,
    stumps,
    tokens,
    words,
)

_PARTS: tuple[ModuleType, ...] = (
    *(questions, evidence, words, cells, rules, stumps, factored, coverage, credit, neighbours, caution, tokens, choice),
)


def render(genome: Genome, direction: str, hypothesis: str, parents: Sequence[str]) -> str:
    """The source of a policy; equal arguments give equal text.

    Args:
        genome: What to write.
        direction: Id of the direction it is proposed for.
        hypothesis: What is expected of it, in a sentence.
        parents: Ids of the entries it was bred from.

    Raises:
        KeyError: The genome names an unknown template, or lacks a gene of its own.
    """
    meta = {"direction": direction, "hypothesis": hypothesis, "parents": list(parents), "genome": genome.to_json()}
    own = "\n\n".join([*_members(genome), *_joints(genome)])
    library = "\n\n".join(_quoted(own))
    head = f"META = {meta!r}\n\nCHOICE = {_choice(genome)!r}\n"
    return f"{head}\n\n{library}\n\n{own.strip()}\n"


def _choice(genome: Genome) -> dict[str, object]:
    return {name: genome.genes[name] for name in sorted(CHOICE_GENES)}


def _members(genome: Genome) -> Iterator[str]:
    """The functions of every member, named by the letters of ``_letters``."""
    for letter, family, source in _letters(genome):
        yield FAMILIES[family](letter, source.genes).strip("\n") + "\n"


def _letters(genome: Genome) -> list[tuple[str, str, Genome]]:
    """Letter, family and genome of every member: the genome's own, then those of the genome it is crossed with."""
    genomes = [genome, genome.crossing.other] if genome.crossing else [genome]
    named = [(family, each) for each in genomes for family in TEMPLATES[each.template].family.split("+")]
    return [("abcdefgh"[k], family, each) for k, (family, each) in enumerate(named)]


def _joints(genome: Genome) -> Iterator[str]:
    letters = _letters(genome)
    models = ", ".join(f'"{letter}": learn_{letter}(rows, table, ctx)' for letter, _, _ in letters)
    seen = bool(genome.genes["seen_tokens"])
    yield f"def joint_gains(models, q, size):\n{_joined(genome, letters)}\n"
    if genome.repairs:
        expressions = ", ".join(f'"yes" if {predicate.expression} else "no"' for predicate in genome.repairs)
        yield f"def repair_cells(q):\n    return [{expressions}]\n"
    yield "\n".join(
        [
            "def fit(rows, ctx):",
            "    table = outcome_table(rows, ctx, CHOICE)",
            f"    models = {{{models}}}",
            *(_REPAIR_FIT if genome.repairs else []),
            *(['    models["ratios"] = token_ratios(rows, table, ctx)'] if seen else []),
            "    return fitted(table, models, ctx)\n",
        ]
    )
    yield "\n".join(
        [
            "def select(state, q):",
            '    gains = joint_gains(state["models"], q, len(state["start"]))',
            *(_REPAIR_SELECT if genome.repairs else []),
            '    values = [start + gain for start, gain in zip(state["start"], gains)]',
            f"    tokens = {_SEEN if seen else _LEARNT}",
            "    return choose(state, values, tokens)\n",
        ]
    )


_SEEN = 'tokens_ahead(state, state["models"]["ratios"], q)'
_LEARNT = 'state["tokens"]'
_REPAIR_FIT = [
    '    known = [joint_gains(models, row, len(table["start"])) for row in rows]',
    '    rest = [[v - g for v, g in zip(line, gains)] for line, gains in zip(left_over(table, table["start"]), known)]',
    '    models["repairs"] = learn_cells([repair_cells(row) for row in rows], table, rest)',
]
_REPAIR_SELECT = [
    '    repaired = cell_effects(state["models"]["repairs"], repair_cells(q), len(gains))',
    "    gains = [gain + more for gain, more in zip(gains, repaired)]",
]


def _joined(genome: Genome, letters: list[tuple[str, str, Genome]]) -> str:
    """The body of ``joint_gains``."""
    crossing = genome.crossing
    if crossing is None or crossing.predicate is None:
        return _mean_of([letter for letter, _, _ in letters])
    own = [letter for letter, _, source in letters if source is genome]
    others = [letter for letter, _, source in letters if source is not genome]
    gated = "\n".join(f"    {line}" for line in _mean_of(others).splitlines())
    return f"    if {crossing.predicate.expression}:\n{gated}\n{_mean_of(own)}"


def _mean_of(letters: Sequence[str]) -> str:
    calls = [f'gains_{letter}(models["{letter}"], q, size)' for letter in letters]
    if len(calls) == 1:
        return f"    return {calls[0]}"
    return f"    found = [{', '.join(calls)}]\n    return [math.fsum(column) / len(found) for column in zip(*found)]"


def _quoted(own: str) -> list[str]:
    """The library functions that a text calls, and those that they call, in the order of the library."""
    library = _library()
    wanted: set[str] = set()
    waiting = set(_names(own) & library.keys())
    while waiting:
        wanted |= waiting
        waiting = set().union(*(_names(library[name]) for name in waiting)) & library.keys() - wanted
    return [text for name, text in library.items() if name in wanted]


@cache
def _names(text: str) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name))


@cache
def _library() -> dict[str, str]:
    """Source of every function of ``parts`` by name, in order."""
    return {
        name: inspect.getsource(value)
        for part in _PARTS
        for name, value in vars(part).items()
        if inspect.isfunction(value) and value.__module__ == part.__name__
    }
