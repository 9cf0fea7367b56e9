"""The promises of ``MemorySystem``, kept by every baseline in ``BASELINES``."""

from typing import Any

import pytest

from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.baselines import BASELINES, Baseline, BaselineContext
from mesa_pipeline.config import Settings
from mesa_pipeline.evaluation.rewards import TokenF1
from mesa_pipeline.evaluation.sweep import Reading
from mesa_pipeline.evaluation.systems import ask_system
from mesa_pipeline.llm.metering import metered_chat
from mesa_pipeline.reading.compose import ALONE, compose_alone
from mesa_pipeline.reading.extractive import ExtractiveReader
from mesa_pipeline.structures import open_structures
from mesa_pipeline.structures.base import StructureContext
from mesa_pipeline.types import Evidence, Question, Trajectory
from tests.baselines.players import PLAYERS, opener
from tests.contracts.test_structures import (
    QUESTIONS,
    TRAJECTORIES,
    HashingEmbedder,
    bytes_of,
    kitchen,
    through_disk,
    trajectory,
)

WRAPPED = {code for code, baseline in BASELINES.items() if baseline.provenance.package}
"""Those that need a worker environment; their own tests hold them to the same promises."""


class Words:
    """Counts words: fast, and the same everywhere."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


@pytest.fixture(params=[code for code in BASELINES if code not in WRAPPED])
def baseline(request: pytest.FixtureRequest, settings: Settings) -> Baseline[Any]:
    structures = open_structures(StructureContext(settings, HashingEmbedder))
    context = BaselineContext(settings, HashingEmbedder, Words(), metered_chat(opener(request.param)), structures=structures)
    return BASELINES[request.param].create(context)


@pytest.fixture(params=TRAJECTORIES)
def history(request: pytest.FixtureRequest) -> Trajectory:
    return TRAJECTORIES[request.param]


def retrieve_all(baseline: Baseline[Any], memory: Any) -> list[Evidence]:
    return [baseline.retrieve(memory, question) for question in QUESTIONS]


def test_the_registry_names_it(baseline: Baseline[Any]) -> None:
    assert BASELINES[baseline.code] is type(baseline)
    assert baseline.name == baseline.code
    assert baseline.title
    assert baseline.provenance.from_paper
    assert baseline.needs_model == (baseline.code in PLAYERS)
    assert baseline.query_model == "none" or baseline.needs_model


def test_identities_are_data(baseline: Baseline[Any]) -> None:
    dump_json([dict(baseline.build_identity()), dict(baseline.retrieve_identity())])


def test_every_episode_can_be_built_and_asked_anything(baseline: Baseline[Any], history: Trajectory) -> None:
    memory = baseline.build(history)
    for evidence in retrieve_all(baseline, memory):
        assert evidence.structure == baseline.code
        assert all(item.text for item in evidence.items)


def test_the_order_of_questions_does_not_matter(baseline: Baseline[Any], history: Trajectory) -> None:
    memory = baseline.build(history)
    before = bytes_of(baseline.encode(memory))
    first = retrieve_all(baseline, memory)
    assert [baseline.retrieve(memory, question) for question in reversed(QUESTIONS)] == first[::-1]
    assert bytes_of(baseline.encode(memory)) == before


def test_building_again_gives_the_same_bytes(baseline: Baseline[Any], history: Trajectory) -> None:
    first = baseline.encode(baseline.build(history))
    baseline.build(TRAJECTORIES["plain"])
    assert bytes_of(baseline.encode(baseline.build(history))) == bytes_of(first)


def test_a_stored_memory_reads_the_same(baseline: Baseline[Any], history: Trajectory) -> None:
    memory = baseline.build(history)
    stored = baseline.encode(memory)
    restored = baseline.decode(through_disk(stored))
    assert retrieve_all(baseline, restored) == retrieve_all(baseline, memory)
    assert bytes_of(baseline.encode(restored)) == bytes_of(stored)


def test_memories_that_are_there_already_make_the_same_memory(baseline: Baseline[Any], settings: Settings) -> None:
    structures = open_structures(StructureContext(settings, HashingEmbedder))
    history = TRAJECTORIES["plain"]
    shared = {code: structures[code].build(history) for code in baseline.shares}
    assert bytes_of(baseline.encode(baseline.build_with(history, shared))) == bytes_of(baseline.encode(baseline.build(history)))


def test_evidence_speaks_of_steps_that_exist(baseline: Baseline[Any], history: Trajectory) -> None:
    known = {step.index for step in history.steps}
    for evidence in retrieve_all(baseline, baseline.build(history)):
        for item in evidence.items:
            assert set(item.steps) <= known
            assert list(item.steps) == sorted(set(item.steps))


def test_nothing_crosses_from_one_episode_to_another(baseline: Baseline[Any]) -> None:
    other = baseline.build(trajectory("other", kitchen("omega")))
    memory = baseline.build(TRAJECTORIES["plain"])
    question = "Where is Mug_omega7? Compare it with Mug_omega9 on drawer 5."
    baseline.retrieve(other, question)
    for evidence in [baseline.retrieve(memory, question), *retrieve_all(baseline, memory)]:
        assert not any("omega" in item.text for item in evidence.items)


def test_it_is_read_by_the_common_reader(baseline: Baseline[Any], settings: Settings) -> None:
    reading = Reading(ExtractiveReader(settings.reading.extractive), Words(), TokenF1("synthetic"))
    question = Question("q", "Where is Mug_alpha7?", answer="on the fridge 7")
    memory = baseline.build(TRAJECTORIES["plain"])
    outcome = ask_system(baseline, memory, question, "tidy up", reading)
    evidence = baseline.retrieve(memory, question.text)
    composed = compose_alone(evidence, Words())
    assert composed.text.startswith(ALONE) or evidence.is_empty
    assert outcome.error is None
    assert outcome.score is not None
    assert outcome.tokens == composed.tokens
    assert (outcome.cost.calls > 0) == (baseline.query_model != "none")
