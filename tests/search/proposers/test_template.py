"""The proposer that breeds templates."""

from dataclasses import replace

import pytest

from mesa_pipeline.evaluation.observables import Condition, Predicate
from mesa_pipeline.policies.base import FitContext
from mesa_pipeline.policies.executable import ExecutablePolicy
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.policies.sandbox.gate import check, require_valid
from mesa_pipeline.search.directions import DIRECTIONS
from mesa_pipeline.search.proposers import ProposalRequest, Slot
from mesa_pipeline.search.proposers.template import TemplateProposer
from mesa_pipeline.search.proposers.templates import TEMPLATES, genome_of, render, templates_of
from mesa_pipeline.search.records import ArchiveEntry, ArmStatistics
from tests.search.proposers.requests import card, entry, request
from tests.search.searches import SETTINGS, search_data, table

PROPOSER = TemplateProposer()
SEEDS = range(40)


def written(id: str, template: str, objective: float = 0.3) -> ArchiveEntry:
    known = TEMPLATES[template]
    source = render(known.default(True), known.directions[0], "A test.", [])
    return entry(id, objective, source=source, direction=known.directions[0])


def asked(slot: Slot, direction: str = "analogy", **changes: object) -> ProposalRequest:
    best = written("02-explore", "context-cells")
    archive = (entry("all", 0.2, direction=None), best, written("01-explore", "label-cells"))
    plain = request(slot=slot, direction=DIRECTIONS[direction], parent=best, archive=archive, rejections=())
    return replace(plain, **changes)  # type: ignore[arg-type]


def proposed(request: ProposalRequest) -> str:
    return PROPOSER.propose(request).source


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_explore_tries_the_templates_of_a_direction_one_after_the_other_then_draws_anew(direction: str) -> None:
    archive: list[ArchiveEntry] = []
    for k in range(len(templates_of(direction)) + 2):
        source = proposed(asked("explore", direction, parent=None, archive=tuple(archive), seed=k))
        archive.append(entry(f"{k:02d}-explore", 0.2, source=source, direction=direction))

    genomes = [genome_of(found.source) for found in archive]
    assert [genome.template for genome in genomes[:-2] if genome] == [t.name for t in templates_of(direction)]
    assert all(check(found.source) == () for found in archive)
    assert len({found.source for found in archive}) == len(archive)


@pytest.mark.parametrize("slot", ["exploit", "explore", "repair"])
def test_equal_requests_give_equal_sources_and_seeds_matter(slot: Slot) -> None:
    archive = tuple(written(f"01-{template}", template) for template in TEMPLATES)
    sources = [proposed(asked(slot, archive=archive, seed=seed)) for seed in (*SEEDS, *SEEDS)]

    assert sources[: len(SEEDS)] == sources[len(SEEDS) :]
    assert len(set(sources)) > 5


def test_nothing_is_proposed_twice() -> None:
    made = asked("exploit", rejections=())
    for seed in range(15):
        source = proposed(replace(made, seed=seed))
        assert source not in {found.source for found in made.archive}
        made = replace(made, archive=(*made.archive, entry(f"{seed:02d}-exploit", 0.2, source=source)))

    genomes = [str(genome.to_json()) for found in made.archive if (genome := genome_of(found.source))]
    assert len(set(genomes)) == len(genomes)


def test_exploit_changes_one_gene_of_the_parent_or_averages_it_with_another_arm() -> None:
    parent = TEMPLATES["context-cells"].default(True)
    crossed = 0
    for seed in SEEDS:
        genome = genome_of(proposed(asked("exploit", seed=seed)))
        assert genome is not None and genome.template == "context-cells"
        if genome.crossing:
            crossed += 1
            assert (genome.genes, genome.crossing.kind, genome.crossing.other.template) == (
                parent.genes,
                "average",
                "label-cells",
            )
        else:
            assert sum(genome.genes[name] != value for name, value in parent.genes.items()) == 1
    assert 0 < crossed < len(SEEDS) / 2


def test_an_arm_whose_variants_choose_alike_is_changed_in_more_genes() -> None:
    parent = TEMPLATES["context-cells"].default(True)
    stuck = (ArmStatistics("analogy", 9, 0.3, 0.0, duplicates=30),)
    changed = []
    for seed in SEEDS:
        genome = genome_of(proposed(asked("exploit", arms=stuck, seed=seed)))
        assert genome is not None
        changed.append(sum(genome.genes[name] != value for name, value in parent.genes.items()))

    assert max(changed) > 2


def test_repair_takes_up_the_predicate_of_a_card_beyond_luck() -> None:
    luck = card(predicate=Predicate((Condition("words", ">", 3.0),)))
    sure = card(predicate=Predicate((Condition("asks_why", "=", True),)), beyond_luck=True)
    for seed in SEEDS:
        source = proposed(asked("repair", cards=(luck, sure), seed=seed))
        genome = genome_of(source)
        assert genome is not None
        assert sure.predicate in (*genome.repairs, genome.crossing.predicate if genome.crossing else None)
        assert sure.description in require_valid(source).meta["hypothesis"]


def test_without_a_card_beyond_luck_repairs_are_often_left_undone() -> None:
    genomes = [genome_of(proposed(asked("repair", cards=(card(),), seed=seed))) for seed in SEEDS]
    repaired = sum(bool(genome and (genome.repairs or (genome.crossing and genome.crossing.predicate))) for genome in genomes)

    assert 0 < repaired < len(SEEDS)


def test_a_parent_of_another_hand_is_not_built_upon() -> None:
    for slot in ("exploit", "repair"):
        source = proposed(asked(slot, parent=entry("03-exploit", 0.4)))
        assert genome_of(source) == TEMPLATES["neighbours"].default(True)


def test_the_parents_are_named() -> None:
    assert require_valid(proposed(asked("explore"))).meta["parents"] == []
    assert require_valid(proposed(asked("exploit"))).meta["parents"][0] == "02-explore"


def test_without_labels_no_genome_is_about_them() -> None:
    context = FitContext(1e-6, 20.0, 0, labels=False)
    for direction in DIRECTIONS:
        source = proposed(asked("explore", direction, archive=(), parent=None, context=context))
        genome = genome_of(source)
        assert genome is not None and genome.genes.get("keys") not in {("domain",), ("domain", "anchor"), ("task", "anchor")}


def test_a_label_that_no_source_can_hold_is_left_alone() -> None:
    odd = card(predicate=Predicate((Condition("domain", "=", "\ud800"),)), beyond_luck=True)

    assert all(check(proposed(asked("repair", cards=(odd,), seed=seed))) == () for seed in SEEDS)


def test_proposals_run_in_the_sandbox_the_same_under_both_hash_seeds() -> None:
    train = table("lamp")
    data = search_data(train)
    sandbox = open_sandbox(SETTINGS.policies.sandbox)
    for direction in DIRECTIONS:
        source = proposed(asked("explore", direction, archive=(), parent=None))
        policy = ExecutablePolicy(direction, source, sandbox)
        state = policy.fit_encoded(data.rows, data.context)
        masks = policy.select_encoded(state, data.questions)
        again = policy.select_encoded(state, data.shuffled, hash_seed=1)
        assert [masks[k] for k in data.order] == again
