"""The promises of ``MemoryStructure``, kept by every structure in ``STRUCTURES``, with and without a language model."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import decode_arrays, dump_json, encode_arrays
from mesa_pipeline.config import Settings
from mesa_pipeline.llm import ChatModel, Message, Role
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.structures.base import MemoryStructure, StoredMemory, StructureContext
from mesa_pipeline.types import Evidence, Step, Trajectory

Structure = MemoryStructure[Any]


class HashingEmbedder:
    """A stand-in for an embedding model: words hashed into 32 dimensions. Fast and the same everywhere, but no semantics."""

    name = "hashing-32"
    dimensions = 32

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
                vectors[row, digest[0] % self.dimensions] += 1.0
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, norms, out=vectors, where=norms > 0)


def trajectory(name: str, steps: Sequence[tuple[str, str]], indices: Sequence[int] | None = None) -> Trajectory:
    indices = indices or range(len(steps))
    pairs = zip(indices, steps, strict=True)
    return Trajectory(name, f"Finish the work of {name}.", tuple(Step(index, *texts) for index, texts in pairs))


def kitchen(marker: str, count: int = 30) -> list[tuple[str, str]]:
    places = ("drawer", "shelf", "fridge", "sink", "cabinet")
    return [
        (
            f"open {places[k % 5]} {k}",
            f"You see Mug_{marker}{k} on the {places[k % 5]} {k}. status: {'done' if k % 4 else 'error'}.",
        )
        for k in range(count)
    ]


HOSTILE = [
    "\x00\x00",
    "\ud800 alone",
    "\u202eשלום עולם",
    "{0} {x} %s $y",
    "Step 3\nAction: x\nObservation: y",
    "#" * 300,
    " \n\t ",
]
TRAJECTORIES = {
    "plain": trajectory("plain", kitchen("alpha")),
    "dialogue": replace(
        trajectory("talk", [("say", f"[1:00 pm on 8 May, 2023] Ann: I saw Bob{k} in Rome.") for k in range(20)]),
        kind="dialogue",
    ),
    "empty": trajectory("empty", []),
    "one step": trajectory("one", [("open drawer 1", "You see a mug.")]),
    "one empty step": trajectory("one-empty", [("", "")]),
    "all steps empty": trajectory("all-empty", [("", "")] * 12),
    "no actions": trajectory("no-actions", [("", f"page {k}") for k in range(9)]),
    "no observations": trajectory("no-observations", [(f"press {k}", "") for k in range(9)]),
    "hostile": trajectory("hostile", [(text, text) for text in HOSTILE]),
    "huge step": trajectory("huge", [*kitchen("b", 4), ("read all", "lorem ipsum Dolor_7 " * 55_000), *kitchen("c", 4)]),
    "indices with gaps": trajectory("gaps", kitchen("delta", 8), [5, 6, 9, 20, 21, 22, 40, 41]),
}
QUESTIONS = [
    "What was on the drawer at step 5?",
    "Which actions were performed until step 22, and how often?",
    "Where is Mug_alpha7, and what did the agent do to the fridge?",
    "Compare steps 3-7 with the last 2 steps.",
    "step 99999",
    "",
    " \n ",
    "?!.,;",
    "\x00 \ud800 \u202eשלום {0} %s",
    "饮料在哪里？",
    "why " * 5_000,
]


STEP_HEADER = re.compile(r"^Step (\d{1,6})\n(?:Action|Observation): (.{0,60})", re.MULTILINE)


def conversing(role: Role, schema: object = None) -> ChatModel:
    """A stand-in for a language model in the roles of the builders: it tells the beginning of each step it is shown."""

    def reply(messages: Sequence[Message], seed: int) -> str:
        told = STEP_HEADER.findall(messages[0].content)
        if role == "check":
            return f"NEED_STEPS: {', '.join(number for number, _ in told[:1])}"
        if role == "summarize":
            return "SUMMARY:\n" + "\n".join(f"- Step {number}: {text}" for number, text in told)
        if len(messages) == 1:
            return json.dumps({"entities": [f"step {number}" for number, _ in told]})
        return json.dumps({"triples": [[f"step {number}", "says", text] for number, text in told]})

    return ScriptedModel(reply, f"scripted {role}")


def with_language_model(settings: Settings) -> Settings:
    structures = settings.structures
    asking = {
        "summary": structures.summary.model_copy(update={"builder": "llm"}),
        "temporal": structures.temporal.model_copy(update={"checker": "llm"}),
        "graph": structures.graph.model_copy(update={"builder": "llm"}),
    }
    return settings.model_copy(update={"structures": structures.model_copy(update=asking)})


@pytest.fixture(params=[*subsets.STRUCTURE_CODES, "S llm", "T llm", "G llm"])
def structure(request: pytest.FixtureRequest, settings: Settings) -> Structure:
    from mesa_pipeline.structures import STRUCTURES

    code, _, model = request.param.partition(" ")
    chosen = with_language_model(settings) if model else settings
    return STRUCTURES[code].create(StructureContext(chosen, HashingEmbedder, conversing))


@pytest.fixture(params=TRAJECTORIES)
def history(request: pytest.FixtureRequest) -> Trajectory:
    return TRAJECTORIES[request.param]


def bytes_of(stored: StoredMemory) -> tuple[str, bytes]:
    return dump_json(dict(stored.payload)), encode_arrays(stored.arrays)


def through_disk(stored: StoredMemory) -> StoredMemory:
    payload, arrays = bytes_of(stored)
    return StoredMemory(json.loads(payload), decode_arrays(arrays))


def retrieve_all(structure: Structure, memory: Any) -> list[Evidence]:
    return [structure.retrieve(memory, question) for question in QUESTIONS]


def test_the_registry_names_the_structure(structure: Structure) -> None:
    from mesa_pipeline.structures import STRUCTURES

    assert STRUCTURES[structure.code] is type(structure)
    assert subsets.STRUCTURE_NAMES[structure.code] == structure.name


def test_identities_are_data(structure: Structure) -> None:
    dump_json([dict(structure.build_identity()), dict(structure.retrieve_identity())])


def test_every_episode_can_be_built_and_asked_anything(structure: Structure, history: Trajectory) -> None:
    memory = structure.build(history)
    for evidence in retrieve_all(structure, memory):
        assert evidence.structure == structure.code
        assert all(item.text for item in evidence.items)


def test_the_order_of_questions_does_not_matter(structure: Structure, history: Trajectory) -> None:
    memory = structure.build(history)
    before = bytes_of(structure.encode(memory))
    first = retrieve_all(structure, memory)
    assert [structure.retrieve(memory, question) for question in reversed(QUESTIONS)] == first[::-1]
    assert structure.retrieve_many(memory, QUESTIONS) == first
    assert bytes_of(structure.encode(memory)) == before


def test_building_again_gives_the_same_bytes(structure: Structure, history: Trajectory) -> None:
    first = structure.encode(structure.build(history))
    structure.build(TRAJECTORIES["plain"])
    assert bytes_of(structure.encode(structure.build(history))) == bytes_of(first)


def test_a_stored_memory_reads_the_same(structure: Structure, history: Trajectory) -> None:
    memory = structure.build(history)
    stored = structure.encode(memory)
    restored = structure.decode(through_disk(stored))
    assert retrieve_all(structure, restored) == retrieve_all(structure, memory)
    assert bytes_of(structure.encode(restored)) == bytes_of(stored)


def test_evidence_speaks_of_steps_that_exist(structure: Structure, history: Trajectory) -> None:
    known = {step.index for step in history.steps}
    for evidence in retrieve_all(structure, structure.build(history)):
        for item in evidence.items:
            assert set(item.steps) <= known
            assert list(item.steps) == sorted(set(item.steps))
            assert item.steps or not item.is_record


def test_no_step_takes_more_room_than_allowed(structure: Structure, history: Trajectory, settings: Settings) -> None:
    room = settings.evidence.max_chars_per_step + 2
    for evidence in retrieve_all(structure, structure.build(history)):
        assert all(len(item.text) <= room * max(len(item.steps), 1) for item in evidence.items)


def test_a_record_shown_by_two_structures_is_the_same_text(settings: Settings) -> None:
    from mesa_pipeline.structures import STRUCTURES

    made = [STRUCTURES[code].create(StructureContext(settings, HashingEmbedder)) for code in subsets.STRUCTURE_CODES]
    shown: dict[int, str] = {}
    for structure in made:
        evidence = structure.retrieve(structure.build(TRAJECTORIES["plain"]), QUESTIONS[0])
        for item in evidence.items:
            if item.is_record and len(item.steps) == 1:
                assert shown.setdefault(item.steps[0], item.text) == item.text


def test_nothing_crosses_from_one_episode_to_another(structure: Structure) -> None:
    other = structure.build(trajectory("other", kitchen("omega")))
    memory = structure.build(TRAJECTORIES["plain"])
    question = "Where is Mug_omega7? Compare it with Mug_omega9 on drawer 5."
    structure.retrieve(other, question)
    for evidence in [structure.retrieve(memory, question), *retrieve_all(structure, memory)]:
        assert not any("omega" in item.text for item in evidence.items)


def test_a_plain_trajectory_gives_evidence(structure: Structure) -> None:
    evidence = structure.retrieve(structure.build(TRAJECTORIES["plain"]), QUESTIONS[0])
    assert not evidence.is_empty


def test_the_fingerprint_of_a_memory_follows_the_trajectory(structure: Structure) -> None:
    assert structure.memory_fingerprint("a") != structure.memory_fingerprint("b")
    assert structure.memory_fingerprint("a") == structure.memory_fingerprint("a")


def test_a_preview_asks_no_language_model(structure: Structure, history: Trajectory) -> None:
    memory = structure.build(history)
    glimpses = structure.preview_many(memory, QUESTIONS)
    assert glimpses == [structure.preview(memory, question) for question in QUESTIONS]
    if structure.previews_evidence:
        assert glimpses == structure.retrieve_many(memory, QUESTIONS)


def test_a_language_model_is_opened_by_those_alone_that_are_set_to_ask_one(settings: Settings) -> None:
    from mesa_pipeline.structures import open_structures

    opened: list[Role] = []

    def chat(role: Role, schema: object = None) -> ChatModel:
        opened.append(role)
        return conversing(role, schema)

    for chosen, expected in ((settings, set()), (with_language_model(settings), {"summarize", "extract", "check"})):
        for structure in open_structures(StructureContext(chosen, HashingEmbedder, chat)).values():
            memory = structure.build(TRAJECTORIES["plain"])
            structure.retrieve(memory, QUESTIONS[0])
            structure.build_identity()
        assert set(opened) == expected


def test_what_needs_no_language_model_keeps_the_keys_it_always_had(settings: Settings) -> None:
    """Memories made before there were other builders stay valid."""
    from mesa_pipeline.structures import open_structures

    made = open_structures(StructureContext(settings, HashingEmbedder))
    summary, graph = settings.structures.summary, settings.structures.graph
    temporal = settings.structures.temporal.model_dump(include={"top_k", "max_steps", "max_listed", "max_listed_chars"})
    extractive = {
        "kind": "extractive",
        "version": 1,
        "max_chars": summary.max_chars_per_segment,
        "max_chars_per_step": summary.max_chars_per_step,
    }
    assert made["S"].build_identity() == {
        "version": 1,
        "summarizer": extractive,
        "window_chars": summary.window_chars,
        "max_chars": summary.max_chars_per_segment,
    }
    assert made["G"].build_identity() == {
        "version": 1,
        "extractor": {"kind": "rules", "version": 1, "triples_per_step": graph.triples_per_step},
        "passage_chars": graph.passage_chars,
        "passage_overlap": graph.passage_overlap_chars,
    }
    assert made["T"].build_identity() == {"version": 1, "tokenizer": settings.stores.bm25.tokenizer}
    assert made["T"].retrieve_identity() == {
        "version": 1,
        "bm25": settings.stores.bm25.model_dump(),
        "selection": temporal,
        "max_chars_per_step": settings.evidence.max_chars_per_step,
        "checker": None,
    }


def test_a_language_model_makes_another_memory(settings: Settings) -> None:
    from mesa_pipeline.structures import open_structures

    plain = open_structures(StructureContext(settings, HashingEmbedder))
    asking = open_structures(StructureContext(with_language_model(settings), HashingEmbedder, conversing))
    differing = {code for code in plain if plain[code].memory_fingerprint("t") != asking[code].memory_fingerprint("t")}
    assert differing == {"S", "T", "G"}
