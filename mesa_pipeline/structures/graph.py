"""G: an episode-level graph of relations between entities, each anchored to its step (paper, Appendix A.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Self

import networkx as nx

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.llm.concurrency import map_concurrently
from mesa_pipeline.stores.tokenizers import open_tokenizer
from mesa_pipeline.structures.base import MemoryStructure, StoredMemory, StructureContext
from mesa_pipeline.structures.graph_access import AccessParameters, FocalRelation, GraphAccess
from mesa_pipeline.structures.graph_index import GraphIndex, Relation
from mesa_pipeline.structures.llm_extraction import LlmExtractor
from mesa_pipeline.structures.observation_units import shorten
from mesa_pipeline.structures.rule_extraction import RuleExtractor
from mesa_pipeline.structures.step_references import parse_references
from mesa_pipeline.structures.triples import Triple, TripleExtractor, anchor, split_passages
from mesa_pipeline.types import Evidence, EvidenceItem, Trajectory

BUILD_VERSION = 1
RETRIEVE_VERSION = 1
MAX_ENTITY_CHARS = 200
MAX_RELATION_CHARS = 120
MAX_TOLD_STEPS = 6


@dataclass(frozen=True)
class GraphState:
    """A graph, the look-ups derived from it, and the index of the trajectory's last step."""

    graph: "nx.MultiDiGraph[str]"
    index: GraphIndex
    last_index: int


class GraphMemory(MemoryStructure[GraphState]):
    """Triples of passages as a ``networkx.MultiDiGraph``, read by linking, scoring and expanding.

    Args:
        extractor: The builder strategy.
        passage_chars: Most characters of one passage.
        passage_overlap: Characters that the parts of a step too long for one passage share.
        tokenizer: Name of the tokenizer of lexical and entity overlap.
        access: Numbers of the access mechanism.
        concurrency: Passages extracted from at a time.
    """

    code = "G"
    name = "graph"

    def __init__(
        self,
        extractor: TripleExtractor,
        passage_chars: int,
        passage_overlap: int,
        tokenizer: str,
        access: AccessParameters,
        concurrency: int = 1,
    ) -> None:
        self._extractor = extractor
        self._passage_chars = passage_chars
        self._passage_overlap = passage_overlap
        self._tokenizer_name = tokenizer
        self._tokenizer = open_tokenizer(tokenizer)
        self._access = access
        self._concurrency = concurrency

    @classmethod
    def create(cls, context: StructureContext) -> Self:
        settings = context.settings.structures.graph
        access = AccessParameters(
            proximity_weight=settings.proximity_weight,
            seed_radius=settings.seed_radius,
            hops=settings.hops,
            focal_relations=settings.focal_relations,
            neighbours_per_relation=settings.neighbours_per_relation,
            hub_relations=settings.hub_relations,
        )
        extractor: TripleExtractor = RuleExtractor(settings.triples_per_step)
        concurrency = 1
        if settings.builder == "llm":
            extractor, concurrency = LlmExtractor(context.chat), context.settings.llm.chat.max_concurrency
        overlap = settings.passage_overlap_chars
        return cls(extractor, settings.passage_chars, overlap, settings.tokenizer, access, concurrency)

    def build_identity(self) -> Mapping[str, Any]:
        return {
            "version": BUILD_VERSION,
            "extractor": dict(self._extractor.identity()),
            "passage_chars": self._passage_chars,
            "passage_overlap": self._passage_overlap,
        }

    def retrieve_identity(self) -> Mapping[str, Any]:
        return {"version": RETRIEVE_VERSION, "tokenizer": self._tokenizer_name, **asdict(self._access)}

    def build(self, trajectory: Trajectory) -> GraphState:
        passages = split_passages(trajectory.steps, self._passage_chars, self._passage_overlap)
        found = map_concurrently(lambda passage: anchor(self._extractor.extract(passage), passage), passages, self._concurrency)
        graph = to_graph(list(chain.from_iterable(found)))
        return GraphState(graph, GraphIndex(graph, self._tokenizer), trajectory.last_index)

    def retrieve(self, memory: GraphState, question: str) -> Evidence:
        references = parse_references(question, memory.last_index).exact
        chosen = GraphAccess(memory.index, self._access, question, references).choose()
        return Evidence(self.code, tuple(_item(focal, memory.index) for focal in chosen))

    def encode(self, memory: GraphState) -> StoredMemory:
        """Node-link data, nodes and edges in the order they were found."""
        data = nx.node_link_data(memory.graph, edges="edges")
        return StoredMemory({"graph": data, "last_index": memory.last_index})

    def decode(self, stored: StoredMemory) -> GraphState:
        try:
            graph = nx.node_link_graph(stored.payload["graph"], directed=True, multigraph=True, edges="edges")
            return GraphState(graph, GraphIndex(graph, self._tokenizer), int(stored.payload["last_index"]))
        except (KeyError, TypeError, nx.NetworkXError) as error:
            raise ArtifactError(
                f"stored graph is not node-link data with labelled nodes ({error!r}); build it again"
            ) from error


def entity_key(text: str) -> str:
    """The node an entity's text stands for: spellings that differ in case or white space are one entity."""
    return " ".join(text.casefold().split())


def to_graph(triples: Sequence[Triple]) -> "nx.MultiDiGraph[str]":
    """A multigraph of anchored triples; equal ones of one step are one edge, and blank ones are left out."""
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    known: set[tuple[str, str, str, int | None]] = set()
    for triple in triples:
        subject, target = shorten(triple.subject, MAX_ENTITY_CHARS), shorten(triple.object, MAX_ENTITY_CHARS)
        relation = shorten(triple.relation, MAX_RELATION_CHARS)
        source_key, target_key = entity_key(subject), entity_key(target)
        fact = (source_key, relation, target_key, triple.step)
        if fact in known or not (source_key and relation and target_key):
            continue
        number = len(known)  # each fact is one edge; asking the graph for its number of edges would count them anew each time
        known.add(fact)
        for key, label in ((source_key, subject), (target_key, target)):
            if key not in graph:
                graph.add_node(key, label=label)
        graph.add_edge(source_key, target_key, key=number, id=number, relation=relation, step=triple.step, time=triple.time)
    return graph


def _item(focal: FocalRelation, index: GraphIndex) -> EvidenceItem:
    steps: set[int] = set()
    lines: list[str] = []
    for relation in (focal.relation, *focal.neighbours):
        told = _told_steps(relation, index)
        steps.update(told)
        where = f"step {told[0]}" if len(told) == 1 else "steps " + ", ".join(str(step) for step in told)
        when = f"; {relation.time}" if relation.time else ""
        line = f"{relation.subject} --{relation.relation}--> {relation.object} ({where}{when})"
        lines.append(f"  {line}" if lines else line)
    return EvidenceItem("\n".join(lines), tuple(sorted(steps)), focal.score)


def _told_steps(relation: Relation, index: GraphIndex) -> tuple[int, ...]:
    """Steps that state the same, ascending; where they are many, the ones nearest to the relation's own."""
    steps = {other.step for other in index.by_entity[relation.source] if other.statement == relation.statement}
    nearest = sorted(steps, key=lambda step: (abs(step - relation.step), step))[:MAX_TOLD_STEPS]
    return tuple(sorted(nearest))
