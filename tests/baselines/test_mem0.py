"""Mem0: what is given to the package, and the package really running, where its environment was made."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mesa_pipeline.baselines import BaselineContext, worker
from mesa_pipeline.baselines.environments import WorkerEnvironment
from mesa_pipeline.baselines.mem0 import Facts, Mem0
from mesa_pipeline.baselines.mem0_chunks import cut_chunks, speakers
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import MissingDependency, ModelError
from mesa_pipeline.llm.metering import MeteredEmbedder, metered, metered_chat
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.types import Step, Trajectory
from tests.baselines.listening import hosts, overheard
from tests.contracts.test_baselines import Words
from tests.contracts.test_structures import QUESTIONS, HashingEmbedder, bytes_of, through_disk

HISTORY = Trajectory("t", "tidy", tuple(Step(n, f"open box{n}", f"a cup{n} is there") for n in range(4)))
TALK = Trajectory(
    "talk", "", tuple(Step(n, "say", f"[1 May, 2023] {'Ann' if n % 2 else 'Bob'}: hello {n}") for n in range(5)), "dialogue"
)


def system(settings: Settings, reply: Any, environments: Path, scratch: Path, **changes: Any) -> Mem0:
    model = ScriptedModel(lambda messages, seed: reply(messages))
    embedder = MeteredEmbedder(HashingEmbedder(), Words())
    section = settings.baselines.mem0.model_copy(update={"chunk_steps": 2, "seconds": 120, **changes})
    changed = settings.model_copy(update={"baselines": settings.baselines.model_copy(update={"mem0": section})})
    chat = metered_chat(lambda role, schema, max_tokens: model)
    return Mem0.create(BaselineContext(changed, lambda: embedder, Words(), chat, environments=environments, scratch=scratch))


def test_steps_are_taken_so_many_at_a_time(settings: Settings) -> None:
    limits = settings.baselines.mem0.model_copy(update={"chunk_steps": 3, "chunk_chars": 120})
    assert [chunk.steps for chunk in cut_chunks(HISTORY, limits)] == [(0, 1), (2, 3)]
    assert {chunk.store for chunk in cut_chunks(HISTORY, limits)} == {"episode"}
    assert cut_chunks(Trajectory("t", "", ()), limits) == []
    long = Trajectory("t", "", (Step(0, "look", "x" * 250), *HISTORY.steps[1:2]))
    assert [chunk.steps for chunk in cut_chunks(long, limits)] == [(0,), (0,), (0, 1)]
    assert all(sum(len(said.text) for said in chunk.messages) <= 120 for chunk in cut_chunks(long, limits))


def test_each_speaker_has_a_store_of_every_pair_of_turns(settings: Settings) -> None:
    chunks = cut_chunks(TALK, settings.baselines.mem0)
    assert speakers(TALK) == ("Bob", "Ann")
    assert [(chunk.store, len(chunk.steps)) for chunk in chunks] == [
        *(("Bob", size) for size in (2, 2, 1)),
        *(("Ann", size) for size in (2, 2, 1)),
    ]
    roles = {chunk.store: [said.role for said in chunk.messages] for chunk in chunks[::3]}
    assert roles == {"Bob": ["user", "assistant"], "Ann": ["assistant", "user"]}
    undated = Trajectory(
        "talk", "", (Step(0, "say", "Ann: look: here"), Step(1, "say", "no name"), Step(2, "say", "")), "dialogue"
    )
    assert speakers(undated) == ("Ann",)


def test_the_nearest_facts_of_each_store_are_read(settings: Settings, tmp_path: Path) -> None:
    texts = ("red cup", "green door", "red cup again")
    vectors = HashingEmbedder().embed(texts)
    memory = Facts("hashing-32", ("Ann", "Ann", "Bob"), texts, ((1,), (2,), (3,)), vectors)
    made = system(settings, lambda messages: "", tmp_path, tmp_path, top_k=1)
    assert [item.text for item in made.retrieve(memory, "red cup").items] == ["red cup", "red cup again"]
    assert made.decode(through_disk(made.encode(memory))).texts == texts


def test_without_its_environment_it_says_how_to_make_one(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(MissingDependency, match="mesa baselines install mem0"):
        system(settings, lambda messages: "", tmp_path, tmp_path).build(HISTORY)


def test_stores_that_a_killed_build_left_are_removed(settings: Settings, tmp_path: Path) -> None:
    left = tmp_path / "mem0" / "stores" / "left" / "qdrant"
    left.mkdir(parents=True)
    made = system(settings, lambda messages: "", tmp_path, tmp_path)
    for _ in range(2):
        made.keep_only([])
        assert not left.exists()


@pytest.fixture(scope="module")
def environments() -> Iterator[Path]:
    """The folder of environments named by MESA_ENVIRONMENTS, where Mem0's was made."""
    folder = os.environ.get("MESA_ENVIRONMENTS")
    if not folder or not WorkerEnvironment("mem0", Path(folder)).is_made:
        pytest.skip("set MESA_ENVIRONMENTS to the folder `environments` where `mesa baselines install mem0` made one")
    yield Path(folder)


def remembering(messages: Any) -> str:
    """Takes the first words of each observation as a fact, and adds what is new."""
    text = messages[-1].content
    if text.startswith("Input:"):
        facts = [line.partition("Observation: ")[2] for line in text.splitlines() if "Observation: " in line]
        return json.dumps({"facts": facts})
    facts = json.loads(text.rpartition("```")[0].rpartition("```")[2].strip().replace("'", '"'))
    return json.dumps({"memory": [{"id": str(100 + n), "text": fact, "event": "ADD"} for n, fact in enumerate(facts)]})


def test_the_package_builds_and_its_search_is_ours(settings: Settings, environments: Path, tmp_path: Path) -> None:
    made = system(settings, remembering, environments, tmp_path)
    with metered() as meter:
        memory = made.build(HISTORY)
    assert memory.texts == tuple(f"a cup{n} is there" for n in range(4))
    assert memory.steps == ((0, 1), (0, 1), (2, 3), (2, 3))
    assert meter.cost.calls == 2 * 2  # extraction and update, for each of two chunks
    assert meter.cost.notes == {"facts: add": 4}
    assert bytes_of(made.encode(made.build(HISTORY))) == bytes_of(made.encode(memory))
    assert list((tmp_path / "mem0" / "stores").iterdir()) == []  # none is left behind
    for question in ("cup2", QUESTIONS[2], "饮料在哪里？"):
        ours = [(item.text, item.score) for item in made.retrieve(memory, question).items]
        theirs = made.search_by_package(memory.texts, question)
        assert sorted(score for _, score in ours) == pytest.approx(sorted(score for _, score in theirs), abs=1e-5)
        assert {text for text, _ in ours} == {text for text, _ in theirs}


def test_what_is_asked_does_not_change_what_is_found_and_no_episode_sees_another(
    settings: Settings, environments: Path, tmp_path: Path
) -> None:
    made = system(settings, remembering, environments, tmp_path)
    other = Trajectory("other", "tidy", tuple(Step(n, f"open crate{n}", f"a mug{n} is there") for n in range(3)))
    memory, lone = made.build(HISTORY), made.build(Trajectory("lone", "tidy", HISTORY.steps[:1]))
    before = bytes_of(made.encode(memory))
    first = made.retrieve(memory, "Where is cup1?")
    assert not any("mug" in item.text for item in made.retrieve(memory, "Where is mug2, and cup3?").items)
    assert not any("cup" in item.text for item in made.retrieve(made.build(other), "Where is mug2, and cup3?").items)
    assert made.retrieve(memory, "Where is cup1?") == first
    assert bytes_of(made.encode(memory)) == before
    assert [item.text for item in made.retrieve(lone, "cup0").items] == ["a cup0 is there"]


def test_an_empty_history_needs_no_package(settings: Settings, tmp_path: Path) -> None:
    made = system(settings, remembering, tmp_path, tmp_path)
    assert made.retrieve(made.build(Trajectory("t", "", ())), "anything").is_empty


@pytest.mark.parametrize(("telemetry", "asked"), [("False", set()), ("True", {"us.i.posthog.com"})])
def test_its_telemetry_is_off(
    telemetry: str, asked: set[str], settings: Settings, environments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Switched on, and kept from reaching anybody, it is heard: so silence means that it is off."""
    assert worker.QUIET["MEM0_TELEMETRY"] == "False"
    monkeypatch.setitem(worker.QUIET, "MEM0_TELEMETRY", telemetry)
    made = system(settings, remembering, environments, tmp_path / "scratch")
    with overheard("mem0", tmp_path) as heard:
        assert made.build(HISTORY).texts
        made.close()
    assert hosts(heard) == asked


def test_each_speakers_store_learns_about_that_speaker(settings: Settings, environments: Path, tmp_path: Path) -> None:
    def telling(messages: Any) -> str:
        if not messages[-1].content.startswith("Input:"):
            return remembering(messages)
        person = messages[0].content.partition("one person, ")[2].partition(",")[0]
        told = [line for line in messages[-1].content.splitlines() if f"{person}: hello" in line]
        after = messages[-1].content.partition("user: ")[2].partition("assistant: ")[0]
        return json.dumps({"facts": [line.rpartition("] ")[2] for line in told if line in after]})

    memory = system(settings, telling, environments, tmp_path).build(TALK)
    assert list(zip(memory.stores, memory.texts, strict=True)) == [
        *(("Bob", f"Bob: hello {n}") for n in (0, 2, 4)),
        *(("Ann", f"Ann: hello {n}") for n in (1, 3)),
    ]


def test_facts_are_updated_and_deleted(settings: Settings, environments: Path, tmp_path: Path) -> None:
    def changing(messages: Any) -> str:
        text = messages[-1].content
        if text.startswith("Input:"):
            return '{"facts": ["cup is red"]}' if "box0" in text else '{"facts": ["cup is blue"]}'
        if "Current memory is empty" in text:
            return '{"memory": [{"id": "0", "text": "cup is red", "event": "ADD"}]}'
        return '{"memory": [{"id": "0", "text": "cup is blue now", "event": "UPDATE", "old_memory": "cup is red"}]}'

    with metered() as meter:
        memory = system(settings, changing, environments, tmp_path).build(HISTORY)
    assert memory.texts == ("cup is blue now",)
    assert memory.steps == ((2, 3),)
    assert meter.cost.notes == {"facts: add": 1, "facts: update": 1}


def test_replies_that_the_package_passes_over_are_counted(settings: Settings, environments: Path, tmp_path: Path) -> None:
    with metered() as meter:
        memory = system(settings, lambda messages: "sorry, no", environments, tmp_path).build(HISTORY)
    assert memory.texts == ()
    assert meter.cost.notes == {"replies not understood": 2}


def test_a_model_that_fails_is_a_failure_and_not_a_memory(settings: Settings, environments: Path, tmp_path: Path) -> None:
    def failing(messages: Any) -> Any:
        return remembering(messages) if messages[-1].content.startswith("Input:") else ModelError("busy")

    with pytest.raises(ModelError, match="busy"):
        system(settings, failing, environments, tmp_path).build(HISTORY)
