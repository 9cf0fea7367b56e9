"""HippoRAG2's graph of passages, entities and facts, and the walk over it (paper, B.1; Gutiérrez et al. 2024)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import networkx as nx
import numpy as np

from mesa_pipeline.baselines.passages import Passage
from mesa_pipeline.config import HipporagSettings

MIN_NAME_CHARS = 3
"""Letters and digits of a name that may have synonyms."""


class Fact(NamedTuple):
    """A statement: entities by position, and the passages that state it."""

    source: int
    relation: str
    target: int
    passages: tuple[int, ...]

    @property
    def entities(self) -> tuple[int, ...]:
        """Its entities, each once."""
        return tuple(dict.fromkeys((self.source, self.target)))


@dataclass(frozen=True)
class PassageGraph:
    """What a trajectory says, with vectors of all of it.

    Attributes:
        embedder: Name of the model that made the vectors.
        passages: In time order.
        entities: Labels.
        facts: Each statement once, in the order found.
        passage_vectors: Shape ``(passages, dimensions)``, float32, L2-normalised; the others likewise.
        entity_vectors: Of the labels.
        fact_vectors: Of the statements.
        synonyms: Pairs of entities with their similarity.
        is_dialogue: Whether the trajectory is a conversation.
    """

    embedder: str
    passages: tuple[Passage, ...]
    entities: tuple[str, ...]
    facts: tuple[Fact, ...]
    passage_vectors: np.ndarray
    entity_vectors: np.ndarray
    fact_vectors: np.ndarray
    synonyms: tuple[tuple[int, int, float], ...]
    is_dialogue: bool

    @cached_property
    def holders(self) -> Mapping[int, frozenset[int]]:
        """The passages that speak of each entity."""
        found: dict[int, set[int]] = defaultdict(set)
        for fact in self.facts:
            for entity in fact.entities:
                found[entity].update(fact.passages)
        return {entity: frozenset(passages) for entity, passages in found.items()}

    @cached_property
    def graph(self) -> "nx.Graph[tuple[str, int]]":
        """Nodes ``("p", passage)`` and ``("e", entity)``, with the weights of the authors' code.

        Between entities, for each direction, 1 for each passage that states a fact of them; where they are synonyms, their
        similarity instead. Between an entity and a passage that speaks of it 1.
        """
        graph: nx.Graph[tuple[str, int]] = nx.Graph()
        graph.add_nodes_from(("p", n) for n in range(len(self.passages)))
        graph.add_nodes_from(("e", n) for n in range(len(self.entities)))
        weights: Counter[tuple[tuple[str, int], tuple[str, int]]] = Counter()
        for fact in self.facts:
            if fact.source != fact.target:
                weights[_ordered(("e", fact.source), ("e", fact.target))] += 2 * len(fact.passages)  # both directions
        for entity, passages in self.holders.items():
            for passage in passages:
                weights[("e", entity), ("p", passage)] = 1
        for one, other, similarity in self.synonyms:
            weights[_ordered(("e", one), ("e", other))] = 2 * similarity  # type: ignore[assignment]
        for (one_node, other_node), weight in sorted(weights.items()):
            graph.add_edge(one_node, other_node, weight=weight)
        return graph

    def statement(self, fact: Fact) -> str:
        """The fact in words."""
        return f"{self.entities[fact.source]} {fact.relation} {self.entities[fact.target]}"


def spread(values: np.ndarray) -> np.ndarray:
    """Values from 0 for the smallest to 1 for the largest; all 1 where there is no difference."""
    values = np.round(values.astype(np.float64), 6)
    width = values.max() - values.min() if len(values) else 0.0
    return (values - values.min()) / width if width > 0 else np.ones_like(values)


def best_first(values: np.ndarray, k: int) -> list[int]:
    """Positions of the ``k`` largest values; equal ones stand in order."""
    return [int(n) for n in np.argsort(-np.round(values, 9), kind="stable")[:k]]


def find_synonyms(names: Sequence[str], vectors: np.ndarray, least: float, most: int) -> tuple[tuple[int, int, float], ...]:
    """Pairs of names with a cosine of at least ``least``, each with at most the ``most`` nearest names of either.

    Args:
        names: Entities; those with fewer than three letters and digits have no synonyms.
        vectors: Shape ``(names, dimensions)``, float32, L2-normalised.
        least: Cosine from which two names are synonyms.
        most: Synonyms of one name.
    """
    long_enough = [n for n, name in enumerate(names) if sum(map(str.isalnum, name)) >= MIN_NAME_CHARS]
    exact = vectors[long_enough].astype(np.float64)
    pairs: dict[tuple[int, int], float] = {}
    for row, n in enumerate(long_enough):
        similarities = np.round(exact @ exact[row], 6)
        for other_row in best_first(similarities, most + 1):
            other = long_enough[other_row]
            if other != n and similarities[other_row] >= least:
                pairs[min(n, other), max(n, other)] = float(similarities[other_row])
    return tuple((one, other, similarity) for (one, other), similarity in sorted(pairs.items()))


def walk(memory: PassageGraph, kept: Mapping[int, float], dense: np.ndarray, settings: HipporagSettings) -> np.ndarray:
    """How much of a random walk from the seeds ends in each passage, shape ``(passages,)``.

    Args:
        memory: What is walked over.
        kept: Scores of the facts that passed the filter, by position; at least one.
        dense: Each passage's similarity to the question, from 0 to 1.
        settings: Seeds and damping.
    """
    seeds = {("p", n): settings.passage_weight * float(score) for n, score in enumerate(dense)}
    seeds |= {("e", entity): score for entity, score in entity_seeds(memory, kept, settings.entity_seeds).items()}
    if not any(seeds.values()):
        return np.asarray(dense, dtype=np.float64)
    ranks = nx.pagerank(memory.graph, alpha=settings.damping, personalization=seeds, weight="weight", max_iter=1000, tol=1e-10)
    return np.array([ranks["p", n] for n in range(len(memory.passages))])


def entity_seeds(memory: PassageGraph, kept: Mapping[int, float], most: int) -> dict[int, float]:
    """The entities of the kept facts with the largest seeds: a fact's score over the number of passages that hold the entity,
    averaged over the entity's facts."""
    shares: dict[int, list[float]] = defaultdict(list)
    for position, score in kept.items():
        for entity in memory.facts[position].entities:
            shares[entity].append(score / len(memory.holders[entity]))
    seeds = {entity: sum(parts) / len(parts) for entity, parts in shares.items()}
    ranked = sorted(seeds, key=lambda entity: (-seeds[entity], entity))
    return {entity: seeds[entity] for entity in ranked[:most]}


def passages_stating(passages: Sequence[Passage], step: int, names: Iterable[str]) -> tuple[int, ...]:
    """Passages with any of the step; of a step that was cut, those parts that name an entity, or all where none does."""
    found = [n for n, passage in enumerate(passages) if step in passage.steps]
    if len(found) > 1:
        wanted = [name.casefold() for name in names]
        naming = [n for n in found if any(name in passages[n].text.casefold() for name in wanted)]
        found = naming or found
    return tuple(found)


def _ordered(one: tuple[str, int], other: tuple[str, int]) -> tuple[tuple[str, int], tuple[str, int]]:
    return (one, other) if one <= other else (other, one)
