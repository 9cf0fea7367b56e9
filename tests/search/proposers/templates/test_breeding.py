import random

import pytest

from mesa_pipeline.evaluation.observables import Condition, Predicate
from mesa_pipeline.search.proposers.templates import TEMPLATES, Genome, cross, genome_of, mutate, random_genome, render, repair
from mesa_pipeline.search.proposers.templates.breeding import MAX_REPAIRS
from mesa_pipeline.search.proposers.templates.catalogue import needs_labels

COUNTS = Predicate((Condition("asks_how_many", "=", True),))
LONG = Predicate((Condition("words", ">", 12.0), Condition("domain", "=", 'it\'s "odd"')))


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_mutation_changes_one_gene_to_another_of_its_values(template: str) -> None:
    rng = random.Random(1)
    genome = TEMPLATES[template].default(True)
    for _ in range(20):
        changed = mutate(genome, True, rng)
        different = [name for name in genome.genes if genome.genes[name] != changed.genes[name]]
        assert len(different) == 1
        assert changed.genes[different[0]] in TEMPLATES[template].choices(True)[different[0]]
        genome = changed


def test_draws_depend_on_the_seed_alone() -> None:
    template = TEMPLATES["anchor-cells"]
    drawn = [random_genome(template, True, random.Random(seed)) for seed in (1, 1, 2)]

    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("template", TEMPLATES)
def test_without_labels_no_gene_is_about_them_where_another_value_exists(template: str) -> None:
    for values in TEMPLATES[template].choices(False).values():
        assert values and not any(needs_labels(value) for value in values)


def test_repairs_are_kept_once_and_the_oldest_goes() -> None:
    predicates = [Predicate((Condition("words", ">", float(k)),)) for k in range(MAX_REPAIRS + 1)]
    genome = TEMPLATES["neighbours"].default(True)
    for predicate in [*predicates, predicates[-1]]:
        genome = repair(genome, predicate)

    assert genome.repairs == tuple(predicates[1:])


def test_a_partner_brings_neither_repairs_nor_a_partner_of_its_own() -> None:
    one, two = TEMPLATES["neighbours"].default(True), TEMPLATES["label-cells"].default(True)
    partner = cross(repair(two, COUNTS), one, None)

    crossed = cross(one, partner, COUNTS)

    assert crossed.crossing is not None
    assert crossed.crossing.other == two
    assert (crossed.crossing.kind, crossed.crossing.predicate) == ("gate", COUNTS)


def test_the_genome_is_read_back_from_the_source() -> None:
    one, two = TEMPLATES["cue-rules"].default(True), TEMPLATES["label-cells"].default(True)
    for genome in (one, repair(one, LONG), cross(repair(one, COUNTS), two, LONG), cross(one, two, None)):
        assert genome_of(render(genome, "free", "A test.", ["01-explore"])) == genome


@pytest.mark.parametrize(
    "source",
    [
        "",
        "def",
        "META = {}",
        "META = 3",
        "META = {'genome': 3}",
        "META = {'genome': {'template': 't'}}",
        "META = f()",
        "META = {'genome': {'template': 't', 'genes': {}, 'repairs': [[]]}}",
        "a.b = 1\nMETA = {'direction': 'free'}",
        "\x00",
    ],
)
def test_a_source_of_another_hand_has_no_genome(source: str) -> None:
    assert genome_of(source) is None


def test_genomes_are_compared_by_their_values() -> None:
    assert Genome("t", {"a": ("x",)}) == Genome.from_json({"template": "t", "genes": {"a": ["x"]}})
