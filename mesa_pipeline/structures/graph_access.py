"""The graph's access mechanism: which relations answer a question (paper, A.1)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mesa_pipeline.structures.graph_index import GraphIndex, Relation


@dataclass(frozen=True, slots=True)
class AccessParameters:
    """Numbers of the access mechanism; see ``structures.graph`` in ``params.yaml``."""

    proximity_weight: float
    seed_radius: int
    hops: int
    focal_relations: int
    neighbours_per_relation: int
    hub_relations: int


@dataclass(frozen=True, slots=True)
class FocalRelation:
    """A relation chosen for a question, its score, and the best relations that share an entity with it."""

    relation: Relation
    score: float
    neighbours: tuple[Relation, ...]


class GraphAccess:
    """Chooses relations for one question.

    Args:
        index: The graph's look-ups.
        parameters: Numbers of the mechanism.
        question: The question.
        references: Steps it names exactly.
    """

    def __init__(self, index: GraphIndex, parameters: AccessParameters, question: str, references: tuple[int, ...]) -> None:
        self._index = index
        self._parameters = parameters
        self._references = references
        self._terms = index.question_terms(question)
        self._links = index.link(question, references)

    def choose(self) -> list[FocalRelation]:
        """Up to ``focal_relations`` relations, best first, each with its neighbours.

        Nothing without a linked entity or an exact reference.
        """
        scores = {relation: self.score(relation) for relation in self._candidates()}
        focal = self._distinct(sorted(scores, key=lambda relation: (-scores[relation], relation.id)), scores)
        told = {relation.statement for relation in focal}
        chosen: list[FocalRelation] = []
        for relation in focal:
            neighbours = self._neighbours(relation, told)
            told.update(neighbour.statement for neighbour in neighbours)
            chosen.append(FocalRelation(relation, scores[relation], neighbours))
        return chosen

    def _distinct(self, ranked: Sequence[Relation], scores: Mapping[Relation, float]) -> list[Relation]:
        """The best ones that score at all and say something new.

        One that shares an entity with a chosen relation of the same step is left out: it comes back as that one's neighbour.
        """
        chosen: list[Relation] = []
        told: set[tuple[str, str, str]] = set()
        places: set[tuple[str, int]] = set()
        for relation in ranked:
            if len(chosen) == self._parameters.focal_relations or scores[relation] <= 0:
                break
            shared = {(end, relation.step) for end in relation.ends}
            if relation.statement not in told and not shared & places:
                chosen.append(relation)
                told.add(relation.statement)
                places |= shared
        return chosen

    def score(self, relation: Relation) -> float:
        """Lexical overlap, plus entity overlap, plus proximity to an exact reference: weight / (1 + distance in steps)."""
        lexical = sum(share for term, share in self._terms.items() if term in relation.terms)
        entity = sum(self._links.get(end, 0.0) for end in dict.fromkeys(relation.ends))
        return lexical + entity + self._proximity(relation)

    def _proximity(self, relation: Relation) -> float:
        if not self._references:
            return 0.0
        distance = min(abs(relation.step - reference) for reference in self._references)
        return self._parameters.proximity_weight / (1 + distance)

    def _candidates(self) -> list[Relation]:
        """Relations near a referenced step, and those within ``hops`` of them or of a linked entity."""
        found = {relation.id: relation for relation in self._seeds()}
        frontier = list(self._links) + [end for relation in found.values() for end in relation.ends if not self._is_hub(end)]
        visited: set[str] = set()
        for hop in range(self._parameters.hops):
            reached: list[str] = []
            for entity in dict.fromkeys(frontier):
                if entity in visited or (hop and self._is_hub(entity)):
                    continue
                visited.add(entity)
                for relation in self._index.by_entity.get(entity, ()):
                    found[relation.id] = relation
                    reached.extend(relation.ends)
            frontier = reached
        return [found[key] for key in sorted(found)]

    def _seeds(self) -> Iterable[Relation]:
        radius = self._parameters.seed_radius
        for step in sorted({reference + offset for reference in self._references for offset in range(-radius, radius + 1)}):
            yield from self._index.by_step.get(step, ())

    def _is_hub(self, entity: str) -> bool:
        return len(self._index.by_entity.get(entity, ())) > self._parameters.hub_relations

    def _neighbours(self, focal: Relation, told: set[tuple[str, str, str]]) -> tuple[Relation, ...]:
        """Best relations that share an entity with a focal one; of a hub's relations only those of the same step."""
        found: dict[int, Relation] = {}
        for end in focal.ends:
            for relation in self._index.by_step[focal.step] if self._is_hub(end) else self._index.by_entity[end]:
                if end in relation.ends and relation.statement not in told:
                    found[relation.id] = relation
        scores: Mapping[int, float] = {key: self.score(relation) for key, relation in found.items()}
        ranked = sorted(
            found.values(), key=lambda relation: (-scores[relation.id], abs(relation.step - focal.step), relation.id)
        )
        distinct: dict[tuple[str, str, str], Relation] = {}
        for relation in ranked:
            distinct.setdefault(relation.statement, relation)
        return tuple(distinct.values())[: self._parameters.neighbours_per_relation]
