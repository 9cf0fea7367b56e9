"""HippoRAG2: passages found by a walk over the facts that connect them (paper, B.1; Gutiérrez et al. 2024)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance, stored_vectors
from mesa_pipeline.baselines.hipporag_graph import (
    Fact,
    PassageGraph,
    best_first,
    find_synonyms,
    passages_stating,
    spread,
    walk,
)
from mesa_pipeline.baselines.passages import BREAK, Passage, as_records, from_records
from mesa_pipeline.config import GraphSettings, HipporagSettings
from mesa_pipeline.llm import Embedder, Message, OpenChat, vectors_for
from mesa_pipeline.llm.metering import note
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.structured import read_list
from mesa_pipeline.structures.base import MemoryStructure, StoredMemory
from mesa_pipeline.structures.graph import GraphState
from mesa_pipeline.structures.graph_index import Relation
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.structures.triples import split_passages
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

VERSION = 2
FILTER = Prompt.load(Path(__file__).parent / "prompts" / "hipporag_filter.md")
VECTORS = ("passage_vectors", "entity_vectors", "fact_vectors")


class HippoRag(Baseline[PassageGraph]):
    """Facts like the question, filtered by a model, seed a personalised PageRank that ranks the passages.

    Args:
        settings: Facts, seeds and passages.
        passages: How the history is cut into passages: as for the graph that the facts are taken from.
        graph: The structure whose triples are the facts.
        chat: Opens the model that filters facts.
        embedder: Opens the embedding model.
    """

    code: ClassVar[str] = "hipporag2"
    name: ClassVar[str] = "hipporag2"
    title: ClassVar[str] = "HippoRAG2"
    shares: ClassVar[tuple[str, ...]] = ("G",)
    query_model = "once"
    needs_embedder = True
    needs_model = True
    provenance = Provenance(
        source="Gutiérrez et al. 2024 and 2025",
        package=None,
        from_paper=(
            "steps packed into passages of at most 24,000 characters, 300 shared where a step is split; turns in conversations",
            "open extraction by the backbone, entities first, then triples: structure G's with structures.graph.builder=llm",
            "five facts filtered by the backbone, five entities seeded, damping 0.5, passage weight 0.05",
            "30 candidates (200 in conversations), five passages, at most 60,000 characters",
        ),
        choices=(
            "PageRank of NetworkX, in place of igraph's",
            "the embedder of the settings for Contriever and bge-m3: baselines.hipporag2.embeddings names another",
            "facts are structure G's triples, shared and not extracted twice: with structures.graph.builder=rules, the setting "
            "for work without a model, rules of ours make them and the backbone is asked for the filter alone",
            "in conversations facts too are extracted from turns packed up to 24,000 characters, one request for many turns, "
            "and each fact is traced to the turns that state it; the paper's passage is a turn there",
            "a filter's reply that cannot be read keeps no fact",
            "a seed of weight 0 is no seed, where the package stops with an error",
        ),
    )

    def __init__(
        self,
        settings: HipporagSettings,
        passages: GraphSettings,
        graph: MemoryStructure[GraphState],
        chat: OpenChat,
        embedder: Callable[[], Embedder],
    ) -> None:
        self._settings = settings
        self._passages = passages
        self._graph = graph
        self._chat = chat
        self._embedder = embedder

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        settings = context.settings.baselines.hipporag2
        embedder = context.embedder_of(settings.embeddings)
        return cls(settings, context.settings.structures.graph, context.structures["G"], context.chat, embedder)

    def build_identity(self) -> Mapping[str, Any]:
        settings = self._settings.model_dump(include={"synonym_similarity", "synonyms"})
        graph = dict(self._graph.build_identity())
        return {"version": VERSION, "graph": graph, "embedder": self._embedder().name, "settings": settings}

    def retrieve_identity(self) -> Mapping[str, Any]:
        settings = self._settings.model_dump(exclude={"embeddings", "synonym_similarity", "synonyms"})
        model = self._chat("recall", None, self._settings.max_tokens).name
        return {"version": VERSION, "model": model, "prompt": FILTER.fingerprint, "settings": settings}

    def build(self, trajectory: Trajectory) -> PassageGraph:
        return self.build_with(trajectory, {"G": self._graph.build(trajectory)})

    def build_with(self, trajectory: Trajectory, shared: Mapping[str, Any]) -> PassageGraph:
        state: GraphState = shared["G"]
        passages, embedder = self._cut(trajectory), self._embedder()
        facts = _Facts(passages)
        for relation in state.index.relations:
            facts.add(relation)
        labels, found = tuple(facts.labels), facts.found
        words = [f"{labels[fact.source]} {fact.relation} {labels[fact.target]}" for fact in found]
        of = [vectors_for(texts, embedder) for texts in ([passage.text for passage in passages], labels, words)]
        synonyms = find_synonyms(labels, of[1], self._settings.synonym_similarity, self._settings.synonyms)
        is_dialogue = trajectory.kind == "dialogue"
        return PassageGraph(embedder.name, passages, labels, tuple(found), of[0], of[1], of[2], synonyms, is_dialogue)

    def retrieve(self, memory: PassageGraph, question: str) -> Evidence:
        """The passages where the walk ends most often; those most like the question where no fact passes the filter.

        Raises:
            ModelError: The model gave no reply.
        """
        if not memory.passages:
            return Evidence(self.code)
        settings = self._settings
        query = self._embedder().embed([question])[0].astype(np.float64)
        dense = spread(memory.passage_vectors.astype(np.float64) @ query)
        kept = self._filtered(memory, question, query)
        if not kept:
            note("questions without a fact")
        ranked = walk(memory, kept, dense, settings) if kept else dense
        candidates = settings.dialogue_candidates if memory.is_dialogue else settings.candidates
        return self._evidence(memory, ranked, best_first(ranked, candidates)[: settings.top_k])

    def encode(self, memory: PassageGraph) -> StoredMemory:
        payload = {
            "embedder": memory.embedder,
            "passages": as_records(memory.passages),
            "entities": list(memory.entities),
            "facts": [[fact.source, fact.relation, fact.target, list(fact.passages)] for fact in memory.facts],
            "synonyms": [list(pair) for pair in memory.synonyms],
            "is_dialogue": memory.is_dialogue,
        }
        return StoredMemory(payload, {name: getattr(memory, name) for name in VECTORS})

    def decode(self, stored: StoredMemory) -> PassageGraph:
        payload = stored.payload
        facts = tuple(Fact(source, relation, target, tuple(held)) for source, relation, target, held in payload["facts"])
        vectors = {name: stored_vectors(stored, self._embedder(), name) for name in VECTORS}
        return PassageGraph(
            embedder=payload["embedder"],
            passages=from_records(payload["passages"]),
            entities=tuple(payload["entities"]),
            facts=facts,
            synonyms=tuple((one, other, similarity) for one, other, similarity in payload["synonyms"]),
            is_dialogue=payload["is_dialogue"],
            **vectors,
        )

    def _cut(self, trajectory: Trajectory) -> tuple[Passage, ...]:
        if trajectory.kind == "dialogue":
            return tuple(Passage(serialize_step(step).text, (step.index,)) for step in trajectory.steps)
        cut = split_passages(trajectory.steps, self._passages.passage_chars, self._passages.passage_overlap_chars)
        return tuple(
            Passage(BREAK.join(serialize_step(step).text for step in steps), tuple(step.index for step in steps))
            for steps in cut
        )

    def _filtered(self, memory: PassageGraph, question: str, query: np.ndarray) -> dict[int, float]:
        """Scores of the facts that the model keeps of those most like the question, by position."""
        if not memory.facts:
            return {}
        scores = spread(memory.fact_vectors.astype(np.float64) @ query)
        linked = best_first(scores, self._settings.facts)
        listed = "\n".join(f"{n}. {memory.statement(memory.facts[position])}" for n, position in enumerate(linked))
        request = FILTER.fill(facts=listed, question=question)
        reply = read_list(
            self._chat("recall", None, self._settings.max_tokens).complete([Message("user", request)]).text, ("keep",)
        )
        if not (reply.items or reply.complete):
            note("filters not understood")
        numbers = dict.fromkeys(n for n in reply.items if type(n) is int and 0 <= n < len(linked))
        return {linked[n]: float(scores[linked[n]]) for n in numbers}

    def _evidence(self, memory: PassageGraph, ranked: np.ndarray, chosen: list[int]) -> Evidence:
        items: list[EvidenceItem] = []
        room = self._settings.evidence_chars
        for position in chosen:
            passage = memory.passages[position]
            if room > 0:
                items.append(EvidenceItem(passage.text[:room], passage.steps, float(ranked[position])))
            room -= len(passage.text)
        return Evidence(self.code, tuple(items), truncated=room < 0)


class _Facts:
    """Statements as they are found, each once with all the passages that state it."""

    def __init__(self, passages: tuple[Passage, ...]) -> None:
        self._passages = passages
        self._entities: dict[str, int] = {}
        self._positions: dict[tuple[str, str, str], int] = {}
        self.labels: list[str] = []
        self.found: list[Fact] = []

    def add(self, relation: Relation) -> None:
        """Take one relation of a graph."""
        source = self._entity(relation.source, relation.subject)
        target = self._entity(relation.target, relation.object)
        stating = passages_stating(self._passages, relation.step, (relation.subject, relation.object))
        position = self._positions.setdefault(relation.statement, len(self.found))
        if position == len(self.found):
            self.found.append(Fact(source, relation.relation, target, stating))
        else:
            known = self.found[position]
            self.found[position] = known._replace(passages=tuple(sorted({*known.passages, *stating})))

    def _entity(self, key: str, label: str) -> int:
        """Position of an entity; the first spelling is its label."""
        position = self._entities.setdefault(key, len(self.labels))
        if position == len(self.labels):
            self.labels.append(label)
        return position
