"""G: linking, scoring, expansion and limits on graphs small enough to work out by hand."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stores.tokenizers import open_tokenizer
from mesa_pipeline.structures.base import StoredMemory, StructureContext
from mesa_pipeline.structures.graph import GraphMemory, to_graph
from mesa_pipeline.structures.graph_access import AccessParameters, GraphAccess
from mesa_pipeline.structures.graph_index import GraphIndex
from mesa_pipeline.structures.triples import Triple, anchor, split_passages
from mesa_pipeline.types import Step, Trajectory

REPOSITORY = Path(__file__).resolve().parents[2]
ACCESS = AccessParameters(
    proximity_weight=1.25, seed_radius=1, hops=2, focal_relations=8, neighbours_per_relation=4, hub_relations=64
)


class Fixed:
    """A strategy that gives the triples it was made with, in the passage of their step."""

    def __init__(self, *triples: Triple) -> None:
        self.triples = triples

    def identity(self) -> Mapping[str, Any]:
        return {"kind": "fixed"}

    def extract(self, passage: Sequence[Step]) -> list[Triple]:
        indices = {step.index for step in passage}
        return [triple for triple in self.triples if triple.step is None or triple.step in indices]


def memory_of(*triples: Triple, steps: int = 40, access: AccessParameters = ACCESS) -> Any:
    structure = GraphMemory(Fixed(*triples), 24000, 300, "words-stop-stem", access)
    trajectory = Trajectory("t", "", tuple(Step(index, "a", "o") for index in range(steps)))
    return structure, structure.build(trajectory)


def access_to(triples: Sequence[Triple], question: str, references: tuple[int, ...] = (), **changes: Any) -> GraphAccess:
    index = GraphIndex(to_graph(triples), open_tokenizer("words-stop-stem"))
    return GraphAccess(index, replace(ACCESS, **changes), question, references)


def focal_of(access: GraphAccess) -> list[str]:
    return [f"{focal.relation.subject} {focal.relation.relation} {focal.relation.object}" for focal in access.choose()]


CHAIN = (
    Triple("lamp", "stands on", "desk", 0),
    Triple("desk", "belongs to", "study", 1),
    Triple("study", "lies beside", "kitchen", 2),
    Triple("kitchen", "leads to", "garden", 3),
)


class TestLinking:
    def test_a_mentioned_entity_brings_its_relations(self) -> None:
        assert focal_of(access_to(CHAIN, "Where is the lamp?", hops=1)) == ["lamp stands on desk"]

    def test_case_and_spacing_do_not_matter(self) -> None:
        triples = [Triple("Red  Lamp", "is", "on", 0)]
        assert focal_of(access_to(triples, "which RED lamp?")) == ["Red Lamp is on"]

    @pytest.mark.parametrize("name", ["1", "12", "a", "the", "of a", "-", "{", "{}"])
    def test_names_that_say_nothing_link_to_nothing(self, name: str) -> None:
        assert focal_of(access_to([Triple(name, "precedes", "1", 0)], f"what of a {name} 1 - {{}} the 12?")) == []

    def test_a_number_that_names_a_step_is_no_mention(self) -> None:
        triples = [Triple("score", "is", "104", 300)]
        assert focal_of(access_to(triples, "What happened at step 104?", (104,))) == []
        assert focal_of(access_to(triples, "When was it 104?")) == ["score is 104"]

    def test_half_of_a_names_weight_is_enough_and_less_is_not(self) -> None:
        triples = [Triple("/srv/app/settings.py", "holds", "x9", 0)]
        assert focal_of(access_to(triples, "what does app/settings.py hold?")) != []
        assert focal_of(access_to(triples, "which app?")) == []

    def test_no_mention_and_no_reference_is_empty(self) -> None:
        structure, memory = memory_of(*CHAIN)
        assert structure.retrieve(memory, "Who won the cup?").is_empty
        assert structure.retrieve(memory, "").is_empty

    def test_the_more_relations_an_entity_has_the_less_it_tells(self) -> None:
        triples = [Triple("agent", "does", f"thing{n}", n) for n in range(9)] + [Triple("key", "opens", "door", 9)]
        links = GraphIndex(to_graph(triples), open_tokenizer("words")).link("the agent and the key", ())
        assert links["key"] == pytest.approx(1.0)
        assert 0 < links["agent"] < 0.5


class TestScoring:
    @pytest.mark.parametrize(("step", "expected"), [(20, 1.25), (19, 0.625), (21, 0.625), (22, 1.25 / 3), (24, 0.25)])
    def test_proximity(self, step: int, expected: float) -> None:
        access = access_to([Triple("p", "q", "r", step)], "at step 20?", (20,))
        (relation,) = access._index.relations
        assert access.score(relation) == pytest.approx(expected)

    def test_the_nearest_reference_counts(self) -> None:
        access = access_to([Triple("p", "q", "r", 9)], "", (3, 10))
        assert access.score(access._index.relations[0]) == pytest.approx(1.25 / 2)

    def test_lexical_and_entity_overlap_add_up(self) -> None:
        """All known terms of the question are in the relation (1.0) and it names one entity with one relation (1.0)."""
        access = access_to([Triple("lamp", "stands on", "desk", 0)], "lamp")
        assert access.score(access._index.relations[0]) == pytest.approx(2.0)

    def test_an_exact_reference_alone_seeds_its_step_and_the_ones_beside_it(self) -> None:
        triples = [Triple(f"x{n}", "meets", f"y{n}", n) for n in range(10)]
        assert focal_of(access_to(triples, "At step 5?", (5,), hops=0)) == ["x5 meets y5", "x4 meets y4", "x6 meets y6"]

    def test_a_range_is_no_exact_reference(self) -> None:
        structure, memory = memory_of(*CHAIN)
        assert structure.retrieve(memory, "between steps 1 and 3?").is_empty
        assert not structure.retrieve(memory, "at step 1?").is_empty


class TestExpansion:
    @pytest.mark.parametrize(("hops", "reached"), [(0, 0), (1, 1), (2, 2), (3, 3)])
    def test_hops(self, hops: int, reached: int) -> None:
        access = access_to(CHAIN, "lamp", hops=hops)
        assert [relation.id for relation in access._candidates()] == list(range(reached))

    def test_a_hub_is_not_expanded_through(self) -> None:
        triples = [Triple("lamp", "near", "agent", 0)] + [Triple("agent", "does", f"thing{n}", n + 1) for n in range(5)]
        assert len(access_to(triples, "lamp", hub_relations=9)._candidates()) == 6
        assert len(access_to(triples, "lamp", hub_relations=3)._candidates()) == 1


class TestLimits:
    def test_eight_focal_relations_with_four_neighbours_each(self) -> None:
        triples = [Triple(f"node{n}", "joins", f"hub{n}", n) for n in range(12)]
        triples += [Triple(f"hub{n}", f"shows{k}", f"leaf{n}x{k}", 20 + n) for n in range(12) for k in range(6)]
        chosen = access_to(triples, " ".join(f"node{n}" for n in range(12))).choose()
        assert len(chosen) == 8
        assert all(len(focal.neighbours) == 4 for focal in chosen)
        assert all("hub" in neighbour.subject for focal in chosen for neighbour in focal.neighbours)

    def test_one_statement_at_many_steps_is_told_once_with_its_steps(self) -> None:
        structure, memory = memory_of(*(Triple("lamp", "stands on", "desk", step) for step in (3, 5, 9)))
        evidence = structure.retrieve(memory, "the lamp?")
        assert [item.text for item in evidence.items] == ["lamp --stands on--> desk (steps 3, 5, 9)"]
        assert evidence.items[0].steps == (3, 5, 9)

    def test_nothing_is_told_twice(self) -> None:
        structure, memory = memory_of(*CHAIN)
        lines = [
            line.strip()
            for item in structure.retrieve(memory, "lamp desk study kitchen").items
            for line in item.text.split("\n")
        ]
        assert len(lines) == len(set(lines)) == 4


def test_evidence_shows_a_focal_relation_with_its_neighbours_beneath() -> None:
    structure, memory = memory_of(
        Triple("soapbar 1", "moved to", "garbagecan 1", 5), Triple("garbagecan 1", "is in", "kitchen", 2, "on 8 May")
    )
    evidence = structure.retrieve(memory, "Where is soapbar 1?")
    assert evidence.items[0].text == (
        "soapbar 1 --moved to--> garbagecan 1 (step 5)\n  garbagecan 1 --is in--> kitchen (step 2; on 8 May)"
    )
    assert evidence.items[0].steps == (2, 5)
    assert not evidence.items[0].is_record


class TestPassages:
    def test_steps_are_packed_up_to_the_limit(self) -> None:
        steps = [Step(index, "a" * 10, "o" * 30) for index in range(7)]
        assert [[step.index for step in passage] for passage in split_passages(steps, 200, 10)] == [[0, 1], [2, 3], [4, 5], [6]]

    def test_a_long_step_is_split_with_overlap_and_nothing_is_lost(self) -> None:
        text = "".join(f"{n:04d}" for n in range(250))
        parts = [passage[0] for passage in split_passages([Step(3, "act", text)], 200, 20)]
        assert {part.index for part in parts} == {3}
        assert [part.action for part in parts] == ["act"] + [""] * (len(parts) - 1)
        rebuilt = parts[0].observation
        for part in parts[1:]:
            assert rebuilt.endswith(part.observation[:20])
            rebuilt += part.observation[20:]
        assert rebuilt == text

    def test_a_triple_is_anchored_to_the_step_that_holds_most_of_its_words(self) -> None:
        passage = [
            Step(4, "open door", "It is locked."),
            Step(5, "take key", "The key opens the door."),
            Step(6, "", "The key."),
        ]
        triples = anchor([Triple("key", "opens", "door"), Triple("x", "y", "z"), Triple("a", "b", "c", 6)], passage)
        assert [triple.step for triple in triples] == [5, 4, 6]


class TestOddInput:
    @pytest.fixture
    def structure(self, settings: Settings) -> GraphMemory:
        return GraphMemory.create(StructureContext(settings, embedder=_no_embedder))

    @pytest.mark.parametrize(
        "observations", [(), ("",), ("", "", ""), ("\x00\ud83d {a: 'b'} {{0}} \u202eabc \u0634\u0645",), ("one",)]
    )
    def test_builds_queries_and_survives_storage(self, structure: GraphMemory, observations: tuple[str, ...]) -> None:
        steps = tuple(Step(index, "", text) for index, text in enumerate(observations))
        memory = structure.build(Trajectory("t", "", steps))
        stored = StoredMemory(json.loads(dump_json(structure.encode(memory).payload)))
        for question in ("", "\ud83d", "{0} %s", "at step 0, what of abc?", "x" * 100_000):
            assert structure.retrieve(structure.decode(stored), question) == structure.retrieve(memory, question)

    def test_one_turn_without_triples_gives_nothing_for_any_question(self) -> None:
        structure = GraphMemory(Fixed(), 24000, 300, "words", ACCESS)
        memory = structure.build(Trajectory("t", "", (Step(0, "a", "b"),)))
        assert all(structure.retrieve(memory, question).is_empty for question in ("a?", "at step 0?", ""))

    def test_a_foreign_payload_is_refused(self, structure: GraphMemory) -> None:
        with pytest.raises(ArtifactError, match="build it again"):
            structure.decode(StoredMemory({"graph": {"nodes": [{"id": "a"}], "edges": []}, "last_index": 3}))

    def test_blank_and_repeated_triples_leave_no_edge(self) -> None:
        graph = to_graph(
            [Triple("a", "b", "c", 1), Triple("A", "b", " c ", 1), Triple("", "b", "c", 1), Triple("a", " ", "c", 1)]
        )
        assert graph.number_of_edges() == 1


def test_reading_parameters_do_not_rebuild_and_building_ones_do(settings: Settings) -> None:
    def structure(**changes: Any) -> GraphMemory:
        graph = settings.structures.graph.model_copy(update=changes)
        structures = settings.structures.model_copy(update={"graph": graph})
        return GraphMemory.create(StructureContext(settings.model_copy(update={"structures": structures}), _no_embedder))

    base = structure()
    for changed in (
        structure(focal_relations=3),
        structure(hops=1),
        structure(proximity_weight=2.0),
        structure(tokenizer="words"),
    ):
        assert changed.build_identity() == base.build_identity()
        assert changed.retrieve_identity() != base.retrieve_identity()
    for changed in (structure(triples_per_step=3), structure(passage_chars=1000), structure(passage_overlap_chars=1)):
        assert changed.build_identity() != base.build_identity()


SCRIPT = """
import json, sys
from pathlib import Path
from mesa_pipeline.config import load_settings
from mesa_pipeline.structures import STRUCTURES
from mesa_pipeline.structures.base import StoredMemory, StructureContext
structure = STRUCTURES["G"].create(StructureContext(load_settings(Path(sys.argv[1]), environment={}), embedder=None))
memory = structure.decode(StoredMemory(json.loads(Path(sys.argv[2]).read_text())))
print(json.dumps([[item.text, item.steps] for item in structure.retrieve(memory, "Where is the lamp at step 1?").items]))
"""


@pytest.mark.slow
def test_a_saved_graph_answers_in_a_new_process(settings: Settings, tmp_path: Path) -> None:
    structure = GraphMemory.create(StructureContext(settings, _no_embedder))
    steps = (
        Step(0, "look", "The lamp stands on the desk."),
        Step(1, "take lamp from desk", "You take the lamp from the desk."),
    )
    memory = structure.build(Trajectory("t", "", steps))
    path = tmp_path / "graph.json"
    path.write_text(dump_json(structure.encode(memory).payload))
    output = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(REPOSITORY / "params.yaml"), str(path)],
        env={"PYTHONHASHSEED": "5", "PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    ).stdout
    here = structure.retrieve(memory, "Where is the lamp at step 1?")
    assert json.loads(output) == [[item.text, list(item.steps)] for item in here.items]
    assert not here.is_empty


def _no_embedder() -> Any:
    raise AssertionError("no embedder is needed")
