"""A-Mem's notes and how they change, with a scripted model."""

from collections.abc import Sequence
from typing import Any

import pytest

from mesa_pipeline.baselines.a_mem import AMem
from mesa_pipeline.baselines.a_mem_notes import (
    Change,
    Decision,
    frequent_words,
    read_changes,
    read_decision,
    read_names,
    read_numbers,
    read_sections,
)
from mesa_pipeline.config import Settings
from mesa_pipeline.llm.metering import MeteredEmbedder, metered, metered_chat
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.types import Step, Trajectory
from tests.contracts.test_baselines import Words
from tests.contracts.test_structures import HashingEmbedder

STEPS = [Step(n, f"open box{n}", f"a cup{n} is there") for n in range(4)]
DESCRIBED = "KEYWORDS: cup, box\nCONTEXT: a box is opened\nTAGS: opening"


def system(settings: Settings, reply: Any, **changes: Any) -> AMem:
    model = ScriptedModel(lambda messages, seed: reply(messages[0].content))
    embedder = MeteredEmbedder(HashingEmbedder(), Words())
    changed = settings.baselines.a_mem.model_copy(update=changes)
    return AMem(changed, metered_chat(lambda role, schema, max_tokens: model), lambda: embedder)


def built(settings: Settings, reply: Any, steps: Sequence[Step] = STEPS, **changes: Any) -> Any:
    made = system(settings, reply, **changes)
    with metered() as meter:
        memory = made.build(Trajectory("t", "", tuple(steps)))
    return memory, meter.cost


def replying(decision: str, **other: str) -> Any:
    def reply(prompt: str) -> str:
        if "NO_EVOLUTION" in prompt:
            return decision
        if "LINKS:" in prompt:
            return other["strengthen"]
        return other["update"] if "NEIGHBOUR:" in prompt else DESCRIBED

    return reply


@pytest.mark.parametrize(
    ("decision", "calls"),
    [("NO_EVOLUTION", 7), ("STRENGTHEN", 10), ("UPDATE_NEIGHBOR", 10), ("STRENGTHEN AND UPDATE_NEIGHBOR", 13), ("hm", 7)],
)
def test_it_asks_as_often_as_the_mechanism_says(settings: Settings, decision: str, calls: int) -> None:
    """An analysis for each of four notes, a decision for all but the first, and what it decides."""
    reply = replying(decision, strengthen="LINKS: 0\nTAGS: new", update="NEIGHBOUR: 0\nCONTEXT: changed")
    memory, cost = built(settings, reply)
    assert cost.calls == calls
    assert cost.notes.get("decisions not understood", 0) == (3 if decision == "hm" else 0)
    assert len(memory.notes) == 4
    assert memory.vectors.shape == (4, 32)


def test_links_point_to_neighbours_and_nowhere_else(settings: Settings) -> None:
    memory, _ = built(settings, replying("STRENGTHEN", strengthen="LINKS: 0, 99, -1, x\nTAGS: linked, none"))
    assert memory.notes[0].links == ()
    # "-1" holds a 1, which is a neighbour once there are two
    assert [len(note.links) for note in memory.notes[1:]] == [1, 2, 2]
    assert all(link < position for position, note in enumerate(memory.notes) for link in note.links)
    assert memory.notes[1].tags == ("linked",)
    assert memory.notes[0].tags == ("opening",)


def test_neighbours_are_described_anew(settings: Settings) -> None:
    memory, _ = built(settings, replying("UPDATE_NEIGHBOR", update="NEIGHBOUR: 0\nCONTEXT: changed\nTAGS: seen"), STEPS[:2])
    assert (memory.notes[0].context, memory.notes[0].tags) == ("changed", ("seen",))
    assert memory.notes[1].context == "a box is opened"


def test_all_are_embedded_again_now_and_then(settings: Settings) -> None:
    reply = replying("UPDATE_NEIGHBOR", update="NEIGHBOUR: 0\nCONTEXT: changed")
    _, seldom = built(settings, reply)
    _, often = built(settings, reply, embed_again_after=2)
    # each note but the first is searched with and each is embedded; the second change of three embeds three notes again
    assert seldom.embedded_texts == 3 + 4
    assert often.embedded_texts == 3 + 4 + 3


def test_without_keywords_frequent_words_stand_in(settings: Settings) -> None:
    memory, cost = built(settings, lambda prompt: "CONTEXT: no keywords", STEPS[:1])
    assert cost.calls == 2
    assert cost.notes == {"replies without keywords": 2}
    assert "box0" in memory.notes[0].keywords
    assert memory.notes[0].context == "no keywords"


def test_a_question_finds_notes_and_what_is_linked_to_them(settings: Settings) -> None:
    def reply(prompt: str) -> str:
        if "# Question" in prompt:
            return "KEYWORDS: box3, cup3"
        return replying("STRENGTHEN", strengthen="LINKS: 0")(prompt)

    made = system(settings, reply, top_k=1)
    memory = made.build(Trajectory("t", "", tuple(STEPS)))
    with metered() as meter:
        evidence = made.retrieve(memory, "Where is it?")
    best = next(n for n, note in enumerate(memory.notes) if (note.step,) == evidence.items[0].steps)
    linked = [memory.notes[link].step for link in memory.notes[best].links]
    assert [item.steps[0] for item in evidence.items[1:]] == linked
    assert meter.cost.calls == 1
    assert "Keywords: cup, box" in evidence.items[0].text


def test_there_is_so_much_room_for_evidence(settings: Settings) -> None:
    made = system(settings, lambda prompt: DESCRIBED, evidence_chars=150)
    evidence = made.retrieve(made.build(Trajectory("t", "", tuple(STEPS))), "cup")
    assert evidence.truncated
    assert sum(len(item.text) for item in evidence.items) == 150


def test_replies_are_read() -> None:
    said = read_sections("**Keywords:** a, 'b', [c]\n- context: x: y\nTAGS:\nTAGS: z")
    assert said == [{"KEYWORDS": "a, 'b', [c]", "CONTEXT": "x: y", "TAGS": ""}, {"TAGS": "z"}]
    assert read_names("a, 'b', [c], a, None, ") == ("a", "b", "c")
    assert read_numbers("neighbours 3, 1, 1 and 7, 99999999", 5) == (3, 1)
    assert read_decision("<think>STRENGTHEN</think>NO_EVOLUTION") == Decision(False, False)
    assert read_decision("strengthen and update_neighbour") == Decision(True, True)
    assert read_decision("") is None
    changes = read_changes("NEIGHBOR: 1\nCONTEXT: c\nNEIGHBOUR: 9\nCONTEXT: d\nNEIGHBOUR: 0\nNEIGHBOUR: 2\nTAGS: t", 3)
    assert changes == [Change(1, "c", ()), Change(2, "", ("t",))]
    assert frequent_words(["the cup the cup a box"]) == ("cup", "box")
