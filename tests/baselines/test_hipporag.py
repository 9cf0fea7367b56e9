"""HippoRAG2's graph and walk, worked by hand and beside another way of computing it, with a scripted filter."""

import re
from typing import Any

import numpy as np
import pytest

from mesa_pipeline.baselines.hipporag import HippoRag
from mesa_pipeline.baselines.hipporag_graph import (
    Fact,
    PassageGraph,
    entity_seeds,
    find_synonyms,
    passages_stating,
    spread,
    walk,
)
from mesa_pipeline.baselines.passages import Passage
from mesa_pipeline.config import Settings
from mesa_pipeline.llm.metering import MeteredEmbedder, metered, metered_chat
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.stores.tokenizers import split_words
from mesa_pipeline.structures import open_structures
from mesa_pipeline.structures.base import StructureContext
from mesa_pipeline.structures.graph import GraphState, to_graph
from mesa_pipeline.structures.graph_index import GraphIndex
from mesa_pipeline.structures.triples import Triple
from mesa_pipeline.types import Step, Trajectory
from tests.contracts.test_baselines import Words
from tests.contracts.test_structures import HashingEmbedder

STEPS = tuple(Step(n, f"look at lamp{n}", f"lamp{n} is in room{n % 3}") for n in range(6))
TRIPLES = [Triple(f"lamp{n}", "is in", f"room{n % 3}", n) for n in range(6)] + [Triple("room0", "is near", "room1", 4)]


def shared() -> dict[str, GraphState]:
    graph = to_graph(TRIPLES)
    return {"G": GraphState(graph, GraphIndex(graph, split_words), 5)}


def asked(settings: Settings, reply: Any, question: str = "lamp4 is in which room", **changes: Any) -> Any:
    model = ScriptedModel(lambda messages, seed: reply)
    section = settings.baselines.hipporag2.model_copy(update={"top_k": 2, **changes})
    passages = settings.structures.graph.model_copy(update={"passage_chars": 60})
    embedder = MeteredEmbedder(HashingEmbedder(), Words())
    graph = open_structures(StructureContext(settings, HashingEmbedder))["G"]
    system = HippoRag(section, passages, graph, metered_chat(lambda role, schema, limit: model), lambda: embedder)
    with metered() as building:
        memory = system.build_with(Trajectory("t", "", STEPS), shared())
    with metered() as asking:
        evidence = system.retrieve(memory, question)
    return evidence, memory, building.cost, asking.cost, model.asked


def small(synonyms: tuple[tuple[int, int, float], ...] = ()) -> PassageGraph:
    """Entities a, b, c; facts a-b in passages 0 and 1, b-c in passage 1; passage 2 has none."""
    vectors = np.zeros((3, 2), dtype=np.float32)
    passages = tuple(Passage(f"p{n}", (n,)) for n in range(3))
    facts = (Fact(0, "r", 1, (0, 1)), Fact(1, "s", 2, (1,)))
    return PassageGraph("e", passages, ("a", "b", "c"), facts, vectors, vectors, vectors[:2], synonyms, False)


def test_seeds_are_shares_of_the_facts_scores() -> None:
    # a: 1/2; b: mean(1/2, 0.4/2); c: 0.4/1
    seeds = entity_seeds(small(), {0: 1.0, 1: 0.4}, 5)
    assert seeds == {0: 0.5, 2: 0.4, 1: pytest.approx(0.35)}
    assert list(entity_seeds(small(), {0: 1.0, 1: 0.4}, 2)) == [0, 2]


def test_weights_are_those_of_both_directions() -> None:
    graph = small(((0, 2, 0.9),)).graph
    assert graph["e", 0]["e", 1]["weight"] == 4  # stated in two passages
    assert graph["e", 1]["e", 2]["weight"] == 2
    assert graph["e", 0]["e", 2]["weight"] == pytest.approx(1.8)
    assert small(((0, 1, 0.9),)).graph["e", 0]["e", 1]["weight"] == pytest.approx(1.8)  # in place of the facts'
    assert graph["e", 1]["p", 1]["weight"] == 1
    assert ("e", 2) in graph
    assert not graph.has_edge(("e", 2), ("p", 0))


def test_the_walk_is_a_personalised_pagerank(settings: Settings) -> None:
    """Beside a plain power iteration over the same weights."""
    memory, dense = small(), np.array([0.2, 0.4, 1.0])
    found = walk(memory, {0: 1.0, 1: 0.4}, dense, settings.baselines.hipporag2)
    nodes = [*(("p", n) for n in range(3)), *(("e", n) for n in range(3))]
    weights = np.array([[memory.graph.get_edge_data(a, b, {"weight": 0})["weight"] for b in nodes] for a in nodes], float)
    restart = np.array([0.05 * 0.2, 0.05 * 0.4, 0.05, 0.5, 0.35, 0.4])
    restart /= restart.sum()
    ranks = restart.copy()
    for _ in range(500):
        flow = sum((ranks[n] * (weights[n] / weights[n].sum() if weights[n].any() else restart) for n in range(6)), np.zeros(6))
        ranks = 0.5 * restart + 0.5 * flow
    np.testing.assert_allclose(found, ranks[:3], atol=1e-8)
    assert found[1] > found[0] > found[2]


def test_a_fact_without_weight_is_no_seed(settings: Settings) -> None:
    dense = np.array([0.0, 0.0, 0.0])
    assert walk(small(), {1: 0.0}, dense, settings.baselines.hipporag2).tolist() == [0, 0, 0]


def test_one_request_a_question_and_none_to_build_from_a_graph(settings: Settings) -> None:
    evidence, memory, building, asking, conversations = asked(settings, '{"keep": [0]}')
    assert (building.calls, asking.calls) == (0, 1)
    assert building.embedded_texts == len(memory.passages) + 9 + 7  # entities and facts
    kept = re.search(r"\n0\. lamp(\d)", conversations[0][0].content)
    assert kept is not None
    assert evidence.items[0].steps == (int(kept[1]),)
    assert len(evidence.items) == 2
    assert conversations[0][0].content.count("\n0. ") == 1
    assert "\n5. " not in conversations[0][0].content


@pytest.mark.parametrize("reply", ['{"keep": []}', "no idea", '{"keep": [99, -1, "0", true]}', ""])
def test_without_a_fact_passages_are_ranked_by_likeness(settings: Settings, reply: str) -> None:
    evidence, memory, _, asking, _ = asked(settings, reply)
    query = HashingEmbedder().embed(["lamp4 is in which room"])[0]
    expected = np.argsort(-np.round(memory.passage_vectors @ query, 6), kind="stable")[:2]
    assert [item.text for item in evidence.items] == [memory.passages[n].text for n in expected]
    assert asking.notes["questions without a fact"] == 1


def test_there_is_so_much_room_for_evidence(settings: Settings) -> None:
    evidence, *_ = asked(settings, '{"keep": [0]}', evidence_chars=70)
    assert sum(len(item.text) for item in evidence.items) == 70
    assert evidence.truncated


def test_names_are_synonyms_when_alike_and_long_enough() -> None:
    vectors = np.array([[1, 0], [0.9, 0.436], [0, 1], [1, 0]], dtype=np.float32)
    assert find_synonyms(["lamp", "lamps", "door", "x1"], vectors, 0.8, 100) == ((0, 1, pytest.approx(0.9)),)
    assert find_synonyms([], np.zeros((0, 2), dtype=np.float32), 0.8, 100) == ()


def test_a_step_in_parts_is_found_by_the_names_in_them() -> None:
    passages = [Passage("Red lamp", (1,)), Passage("blue door", (1,)), Passage("other", (2,))]
    assert passages_stating(passages, 1, ("door", "wall")) == (1,)
    assert passages_stating(passages, 1, ("nothing",)) == (0, 1)
    assert passages_stating(passages, 2, ("door",)) == (2,)
    assert passages_stating(passages, 9, ("door",)) == ()


def test_values_are_spread() -> None:
    assert spread(np.array([2.0, 4.0, 3.0])).tolist() == [0.0, 1.0, 0.5]
    assert spread(np.array([2.0, 2.0])).tolist() == [1.0, 1.0]
    assert spread(np.zeros(0)).tolist() == []
