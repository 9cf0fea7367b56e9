"""The proposer without a language model: it breeds templates by the seed, learning from what the archive already holds."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.evaluation.failures import FailureCard
from mesa_pipeline.policies.sandbox.gate import DEFAULT_LIMITS
from mesa_pipeline.search.proposers import TEMPLATE, Proposal, ProposalRequest
from mesa_pipeline.search.proposers.templates import (
    TEMPLATES,
    Genome,
    cross,
    genome_of,
    mutate,
    random_genome,
    render,
    repair,
    templates_of,
)
from mesa_pipeline.search.records import ArchiveEntry

ATTEMPTS = 12
CROSSING_SHARE = 0.1
PARTNERS = 5
DUPLICATES_PER_STEP = 3
MOST_EXTRA_STEPS = 3
DOUBT = 0.8
"""Share of repairs left undone where no failure card is beyond luck."""


@dataclass(frozen=True)
class _Variant:
    """A genome with the reason for it."""

    genome: Genome
    reason: str
    parents: tuple[str, ...] = ()

    @property
    def hypothesis(self) -> str:
        return f"{TEMPLATES[self.genome.template].hypothesis} {self.reason}".strip()


@dataclass(frozen=True)
class _Known:
    """An archive entry that was written from a genome."""

    entry: ArchiveEntry
    genome: Genome


class TemplateProposer:
    """Draws on the templates of the direction asked for.

    Explore takes the first template nobody tried, with its defaults, then random ones. Exploit changes a gene of the arm's
    best policy, or averages it with a good one of another arm. Repair gives the questions of a failure card an effect of their
    own, or hands them to another good policy. What was proposed before is not proposed again.
    """

    name = TEMPLATE
    trusted = True

    def propose(self, request: ProposalRequest) -> Proposal:
        """The first new variant among a few drawn from the request's seed; the last of them where none is new."""
        rng = random.Random(request.seed)
        seen = {_key(genome) for genome in _genomes(request)}
        source = ""
        for variant in _variants(request, rng):
            source = render(variant.genome, request.direction.id, variant.hypothesis, variant.parents)
            if _key(variant.genome) not in seen and len(source.encode()) <= DEFAULT_LIMITS.source_bytes:
                break
        return Proposal(source)


def _variants(request: ProposalRequest, rng: random.Random) -> Iterator[_Variant]:
    """``ATTEMPTS`` variants for the slot, then one drawn anew, which always fits within the limits."""
    parent = _parent(request)
    for _ in range(ATTEMPTS):
        if request.slot == "explore" or parent is None:
            yield _explored(request, rng)
        elif request.slot == "repair":
            yield _repaired(request, parent, rng)
        else:
            yield _exploited(request, parent, rng)
    yield _explored(request, rng)


def _parent(request: ProposalRequest) -> _Known | None:
    known = _known([request.parent]) if request.parent else []
    return known[0] if known else None


def _explored(request: ProposalRequest, rng: random.Random) -> _Variant:
    labels, templates = request.context.labels, templates_of(request.direction.id)
    tried = {_key(genome) for genome in _genomes(request)}
    untried = [template for template in templates if _key(template.default(labels)) not in tried]
    if untried:
        return _Variant(untried[0].default(labels), "")
    return _Variant(random_genome(rng.choice(templates), labels, rng), "Drawn anew.")


def _exploited(request: ProposalRequest, parent: _Known, rng: random.Random) -> _Variant:
    partners = _partners(request, parent)
    if partners and rng.random() < CROSSING_SHARE:
        partner = rng.choice(partners)
        genome = cross(parent.genome, partner.genome, None)
        return _Variant(genome, "Averaged with a policy of another arm.", (parent.entry.id, partner.entry.id))
    genome = parent.genome
    for _ in range(_steps(request)):
        genome = mutate(genome, request.context.labels, rng)
    changed = sorted(name for name, value in genome.genes.items() if value != parent.genome.genes.get(name))
    return _Variant(genome, f"Changed: {', '.join(changed)}.", (parent.entry.id,))


def _steps(request: ProposalRequest) -> int:
    """Genes changed at once: more for an arm whose variants have mostly chosen alike."""
    duplicates = sum(arm.duplicates for arm in request.arms if arm.direction == request.direction.id)
    return 1 + min(MOST_EXTRA_STEPS, duplicates // DUPLICATES_PER_STEP)


def _repaired(request: ProposalRequest, parent: _Known, rng: random.Random) -> _Variant:
    writable = [card for card in request.cards if _is_writable(card)]
    cards = [card for card in writable if card.beyond_luck] or writable
    if not cards or (not cards[0].beyond_luck and rng.random() < DOUBT):
        return _exploited(request, parent, rng)
    card = cards[min(int(rng.expovariate(1.0)), len(cards) - 1)]
    partners = _partners(request, parent)
    if partners and rng.random() < CROSSING_SHARE:
        partner = rng.choice(partners)
        genome = cross(parent.genome, partner.genome, card.predicate)
        return _Variant(genome, f"Another policy decides where {card.description}.", (parent.entry.id, partner.entry.id))
    return _Variant(repair(parent.genome, card.predicate), f"Repaired where {card.description}.", (parent.entry.id,))


def _partners(request: ProposalRequest, parent: _Known) -> list[_Known]:
    """The best entries of other arms, best first."""
    others = [entry for entry in request.archive if entry.direction != parent.entry.direction]
    ranked = sorted(others, key=lambda entry: (-round(entry.validation.objective, 12), entry.id))
    return _known(ranked)[:PARTNERS]


def _known(entries: Iterable[ArchiveEntry]) -> list[_Known]:
    """The entries written from a genome of a template there still is."""
    found = [(entry, genome_of(entry.source)) for entry in entries]
    return [_Known(entry, genome) for entry, genome in found if genome is not None and genome.template in TEMPLATES]


def _genomes(request: ProposalRequest) -> list[Genome]:
    sources = [*(entry.source for entry in request.archive), *(rejection.source for rejection in request.rejections)]
    return [genome for genome in map(genome_of, sources) if genome is not None]


def _key(genome: Genome) -> str:
    return dump_json(genome.to_json())


def _is_writable(card: FailureCard) -> bool:
    """Whether a card's predicate can stand in a source: a label may hold half of a surrogate pair."""
    return not any("\ud800" <= character <= "\udfff" for character in card.predicate.words)
