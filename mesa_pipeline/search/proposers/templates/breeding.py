"""How genomes vary: drawn anew, changed in one gene, repaired where a policy loses, crossed with another."""

import random
from dataclasses import replace

from mesa_pipeline.evaluation.observables import Predicate
from mesa_pipeline.search.proposers.templates.catalogue import TEMPLATES, Template
from mesa_pipeline.search.proposers.templates.genome import Crossing, Genome

MAX_REPAIRS = 3


def random_genome(template: Template, labels: bool, rng: random.Random) -> Genome:
    """A genome with every gene drawn at random."""
    return Genome(template.name, {name: rng.choice(values) for name, values in template.choices(labels).items()})


def mutate(genome: Genome, labels: bool, rng: random.Random) -> Genome:
    """The genome with one gene changed to another of its values; unchanged where no gene has another.

    Raises:
        KeyError: The genome names an unknown template.
    """
    choices = TEMPLATES[genome.template].choices(labels)
    others = {name: [v for v in values if v != genome.genes.get(name)] for name, values in choices.items()}
    names = [name for name, values in others.items() if values]
    if not names:
        return genome
    name = rng.choice(names)
    return replace(genome, genes={**genome.genes, name: rng.choice(others[name])})


def repair(genome: Genome, predicate: Predicate) -> Genome:
    """The genome with an effect for the questions of a predicate; the oldest goes where there would be too many."""
    kept = tuple(known for known in genome.repairs if known != predicate)
    return replace(genome, repairs=(*kept, predicate)[-MAX_REPAIRS:])


def cross(genome: Genome, other: Genome, predicate: Predicate | None) -> Genome:
    """The genome with another beside it: deciding alone where the predicate holds, or averaged where there is none."""
    partner = Genome(other.template, other.genes)
    return replace(genome, crossing=Crossing("gate" if predicate else "average", partner, predicate))
