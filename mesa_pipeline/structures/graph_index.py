"""Look-ups over a graph of relations: by entity, by step, by word; and the linking of a question's mentions to entities."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from mesa_pipeline.stores.tokenizers import STOP_WORDS, Tokenizer, split_words

MAX_MENTION_WORDS = 12
MIN_COVERAGE = 0.5
MIN_NUMBER_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Relation:
    """One edge of the graph; ``subject`` and ``object`` as written, ``source`` and ``target`` the nodes they stand for."""

    id: int
    source: str
    target: str
    subject: str
    relation: str
    object: str
    step: int
    time: str
    terms: frozenset[str]

    @property
    def ends(self) -> tuple[str, str]:
        return self.source, self.target

    @property
    def statement(self) -> tuple[str, str, str]:
        """What it says, whenever it says it."""
        return self.source, self.relation, self.target


class GraphIndex:
    """Relations of a graph with everything that access needs, derived from the graph alone.

    Args:
        graph: Nodes carry ``label``; edges ``id``, ``relation``, ``step`` and ``time``.
        tokenizer: Cuts entities, relations and questions into the terms of lexical overlap.
    """

    def __init__(self, graph: "nx.MultiDiGraph[str]", tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._labels: dict[str, str] = {node: data["label"] for node, data in graph.nodes(data=True)}
        self._terms = {node: frozenset(tokenizer(label)) for node, label in self._labels.items()}
        edges = sorted(graph.edges(data=True), key=lambda edge: edge[2]["id"])
        self.relations = tuple(self._relation(source, target, data) for source, target, data in edges)
        self.by_entity: dict[str, list[Relation]] = defaultdict(list)
        self.by_step: dict[int, list[Relation]] = defaultdict(list)
        for relation in self.relations:
            self.by_step[relation.step].append(relation)
            for end in dict.fromkeys(relation.ends):
                self.by_entity[end].append(relation)

    def _relation(self, source: str, target: str, data: Mapping[str, object]) -> Relation:
        name = str(data["relation"])
        terms = self._terms[source] | self._terms[target] | frozenset(self._tokenizer(name))
        subject, target_label = self._labels[source], self._labels[target]
        step = int(str(data["step"]))
        return Relation(int(str(data["id"])), source, target, subject, name, target_label, step, str(data["time"]), terms)

    @cached_property
    def _term_counts(self) -> Counter[str]:
        return Counter(term for relation in self.relations for term in relation.terms)

    @cached_property
    def _entities_by_term(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for entity, terms in self._terms.items():
            for term in terms:
                found[term].append(entity)
        return found

    @cached_property
    def _entities_by_words(self) -> dict[tuple[str, ...], list[str]]:
        found: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for entity, label in self._labels.items():
            words = tuple(split_words(label))
            if len(words) <= MAX_MENTION_WORDS and is_mentionable(words):
                found[words].append(entity)
        return found

    def weight(self, term: str) -> float:
        """How much a term tells relations apart, log(1 + N / df); 0 for one that no relation has."""
        count = self._term_counts[term]
        return math.log1p(len(self.relations) / count) if count else 0.0

    def question_terms(self, question: str) -> dict[str, float]:
        """Terms of a question with their share of its weight; the shares sum to 1 where there are any."""
        terms = sorted({term for term in self._tokenizer(question) if len(term) > 1})
        weights = {term: self.weight(term) for term in terms}
        total = sum(weights.values())
        return {term: weight / total for term, weight in weights.items()} if total else {}

    def link(self, question: str, step_numbers: Iterable[int]) -> dict[str, float]:
        """Entities that the question mentions, with a strength in (0, 1].

        An entity is mentioned by its whole name, or by terms that carry at least half of its name's weight. The strength falls
        with the number of the entity's relations: one that is everywhere tells little.

        Args:
            question: Any text.
            step_numbers: Numbers that the question uses to name steps; as entities they are not meant.
        """
        if not self.relations:
            return {}
        words = split_words(question)
        strengths: dict[str, float] = defaultdict(float)
        excluded = {str(number) for number in step_numbers}
        for entity in self._named(words):
            if self._labels[entity].strip("[]") not in excluded:
                strengths[entity] = 1.0
        for entity, coverage in self._covered(question, excluded).items():
            strengths[entity] = max(strengths[entity], coverage)
        largest = math.log1p(len(self.relations))
        return {
            entity: strength * math.log1p(len(self.relations) / len(self.by_entity[entity])) / largest
            for entity, strength in sorted(strengths.items())
            if self.by_entity[entity]
        }

    def _named(self, words: Sequence[str]) -> Iterable[str]:
        for start in range(len(words)):
            for end in range(start + 1, min(start + MAX_MENTION_WORDS, len(words)) + 1):
                yield from self._entities_by_words.get(tuple(words[start:end]), ())

    def _covered(self, question: str, excluded: set[str]) -> dict[str, float]:
        matched: dict[str, float] = defaultdict(float)
        for term in sorted(set(self._tokenizer(question))):
            if len(term) > 1 and term not in excluded:
                for entity in self._entities_by_term.get(term, ()):
                    matched[entity] += self.weight(term)
        covered: dict[str, float] = {}
        for entity, weight in matched.items():
            coverage = weight / math.fsum(self.weight(term) for term in self._terms[entity])  # exact, so in any order
            if coverage >= MIN_COVERAGE and is_mentionable(split_words(self._labels[entity])):
                covered[entity] = min(coverage, 1.0)
        return covered


def is_mentionable(words: Sequence[str]) -> bool:
    """Whether a name says enough to be recognised in a question: "1", "12" and "a" do not."""
    return any(
        (len(word) >= MIN_NUMBER_DIGITS if word.isdigit() else len(word) > 1 and word not in STOP_WORDS) for word in words
    )
