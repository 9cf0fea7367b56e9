"""Open extraction by a language model: two requests a passage, replies in every shape, and what a cut reply is worth."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.errors import ModelError
from mesa_pipeline.llm import ChatModel, Message, OpenChat
from mesa_pipeline.llm.cache import ReplyCache
from mesa_pipeline.llm.scripted import MISBEHAVIOURS, Reply, Script, ScriptedModel
from mesa_pipeline.llm.structured import read_list
from mesa_pipeline.structures.graph import GraphMemory
from mesa_pipeline.structures.graph_access import AccessParameters
from mesa_pipeline.structures.llm_extraction import (
    ENTITIES_SCHEMA,
    ENTITY_KEYS,
    TRIPLE_KEYS,
    TRIPLES_SCHEMA,
    LlmExtractor,
    halves,
    read_entities,
    read_triples,
)
from mesa_pipeline.structures.triples import Triple
from mesa_pipeline.types import Step, Trajectory
from tests.structures.models import Cut, Remembering, always

PASSAGE = (Step(0, "open {drawer} 1", "You see a key."), Step(1, "take key", "The key costs $5."))
ENTITIES = '{"entities": ["drawer 1", "key"]}'
TRIPLES = '{"triples": [["drawer 1", "holds", "key"]]}'
HOLDS = Triple("drawer 1", "holds", "key")
ACCESS = AccessParameters(
    proximity_weight=1.25, seed_radius=1, hops=2, focal_relations=8, neighbours_per_relation=4, hub_relations=64
)


def extract(script: Script, passage: Sequence[Step] = PASSAGE) -> list[Triple]:
    return LlmExtractor(always(ScriptedModel(script))).extract(passage)


def graph_memory(chat: OpenChat, concurrency: int = 4) -> GraphMemory:
    return GraphMemory(LlmExtractor(chat), 70, 10, "words-stop-stem", ACCESS, concurrency)


def walk(count: int) -> Trajectory:
    return Trajectory("t", "", tuple(Step(k, f"go {k}", f"room number {k} of the long hall") for k in range(count)))


def extracting(messages: Sequence[Message], seed: int) -> Reply:
    """Says of every step of a passage that it shows a room."""
    numbers = re.findall(r"room number (\d+) ", messages[0].content)
    if len(messages) == 1:
        return json.dumps({"entities": [f"room {number}" for number in numbers]})
    return json.dumps({"triples": [[f"room number {number}", "lies in", "the long hall"] for number in numbers]})


def test_the_second_request_goes_on_from_the_first() -> None:
    model = ScriptedModel([ENTITIES, TRIPLES])
    assert LlmExtractor(always(model)).extract(PASSAGE) == [HOLDS]
    (first,), (again, named, second) = model.asked
    assert first == again
    assert "Step 0\nAction: open {drawer} 1\nObservation: You see a key.\n\nStep 1\n" in first.content
    assert named == Message("assistant", ENTITIES)
    assert second.role == "user"
    assert "key" not in second.content


def test_the_endpoint_is_told_the_form_of_each_reply() -> None:
    opened: list[Any] = []

    def chat(role: str, schema: object = None) -> ChatModel:
        opened.append((role, schema))
        return ScriptedModel([ENTITIES] if schema is ENTITIES_SCHEMA else [TRIPLES])

    assert LlmExtractor(chat).extract(PASSAGE) == [HOLDS]
    assert opened == [("extract", ENTITIES_SCHEMA), ("extract", TRIPLES_SCHEMA)]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"entities": ["door", "key"]}', ["door", "key"]),
        ('{"named_entities": ["key", ...]}', ["key"]),
        ('```json\n["door","key"]\n```', ["door", "key"]),
        ('{"named_entities": ["key", "key", " key ", "...", "", null]}', ["key"]),
        ('{"entities": [{"name": "door", "type": "object"}, {"id": 3}, 7, true]}', ["door", "7", "true"]),
        ('{"entities": ["a {b}", "[1]", "c\\"d"]}', ["a {b}", "[1]", 'c"d']),
        ('{"entities": ["door", "ke', ["door"]),
        ("there are none", []),
        ("", []),
    ],
)
def test_entities_are_read(reply: str, expected: list[str]) -> None:
    assert read_entities(read_list(reply, ENTITY_KEYS)) == expected


A_B_C = (Triple("a", "b", "c"),)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"triples": [["a","b","c"]]}', A_B_C),
        ('```json\n{"triples": [["a","b","c"]]}\n```', A_B_C),
        ('Here you are: [["a","b","c"], ["a", "b", "c"]] Enjoy.', A_B_C),
        ('{"relations": [["a","b","c"]]}', A_B_C),
        ('{"graph": [["a","b","c"]]}', A_B_C),
        ('[{"subject":"a","predicate":"b","object":"c"}]', A_B_C),
        ('{"triples": [{"object":"c","head":"a","relation":"b","step":3}]}', A_B_C),
        ('{"triples": [["a","b"], ["a","b","c","d"], "a b c", {"subject":"a"}, ["a","","c"], ["a",null,"c"], 5]}', ()),
        ('{"triples": [["...","...","..."]]}', ()),
        ('{"triples": [[1, "is", true], ["x", "has", [1, 2]]]}', (Triple("1", "is", "true"), Triple("x", "has", "[1, 2]"))),
        ('{"triples": [["{", "->", "}"]]}', (Triple("{", "->", "}"),)),
        ('{"triples":[["a","b","c"],["d","e"', A_B_C),
        ('{"triples":[["a","b","c"],["d","e, f","g', A_B_C),
        ('<think>[["x","y","z"]]</think>{"triples": [["a","b","c"]]}', A_B_C),
        ('{"triples": [["a\\ud83d", "b", ["\\udfff"]]]}', (Triple("a?", "b", '["?"]'),)),
        ("```json\n[]\n```", ()),
        ("__import__('os').system('true')", ()),
    ],
)
def test_triples_are_read(reply: str, expected: tuple[Triple, ...]) -> None:
    assert read_triples(read_list(reply, TRIPLE_KEYS)) == expected


@given(st.text(max_size=300))
def test_any_reply_can_be_read(reply: str) -> None:
    read_entities(read_list(reply, ENTITY_KEYS))
    read_triples(read_list(reply, TRIPLE_KEYS))


def test_prose_is_asked_for_once_more_in_other_words() -> None:
    model = ScriptedModel([ENTITIES, "The drawer holds the key.", TRIPLES])
    assert LlmExtractor(always(model)).extract(PASSAGE) == [HOLDS]
    assert model.asked[1][:2] == model.asked[2][:2]
    assert model.asked[2][2].content.startswith(model.asked[1][2].content)
    assert model.asked[2] != model.asked[1]


def test_a_passage_nobody_can_read_gives_nothing_and_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    assert extract(["", "", "", "There is a key."]) == []
    assert "steps 0-1" in caplog.text


def test_an_honest_empty_list_is_not_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(['{"entities": []}', '{"triples": []}'])
    assert LlmExtractor(always(model)).extract(PASSAGE) == []
    assert len(model.asked) == 2
    assert caplog.text == ""


def test_a_cut_reply_keeps_what_is_whole_and_asks_for_each_half_once() -> None:
    model = ScriptedModel(
        [
            ENTITIES,
            '{"triples": [["drawer 1", "holds", "key"], ["key", "co',
            '{"triples": [["drawer 1", "holds", "key"], ["agent", "opens", "drawer 1"]]}',
            '{"triples": [["key", "costs", "$5"], ["agent", "ta',
        ]
    )
    assert LlmExtractor(always(model)).extract(PASSAGE) == [
        HOLDS,
        Triple("agent", "opens", "drawer 1"),
        Triple("key", "costs", "$5"),
    ]
    first_half, second_half = (asked[0].content for asked in model.asked[2:])
    assert "Step 0" in first_half
    assert "Step 1" not in first_half
    assert "Step 1" in second_half
    assert all(asked[1].content == ENTITIES for asked in model.asked[1:])


@pytest.mark.parametrize("text", ["", '{"triples":[["a","b","c"],["d","e"', '{"triples": [["'])
def test_a_model_that_always_runs_out_of_room_is_asked_four_times_and_never_the_same(text: str) -> None:
    model = ScriptedModel(lambda messages, seed: text)
    found = LlmExtractor(always(Cut(model))).extract(PASSAGE)
    assert found == ([Triple("a", "b", "c")] if "a" in text else [])
    assert len(model.asked) == 4
    assert len(set(model.asked)) == len(model.asked)


def test_a_whole_list_is_whole_whatever_the_server_says() -> None:
    model = ScriptedModel([ENTITIES, TRIPLES])
    assert LlmExtractor(always(Cut(model))).extract(PASSAGE) == [HOLDS]
    assert len(model.asked) == 2


def test_halves_meet_in_the_middle() -> None:
    steps = [Step(k, "a" * size, "") for k, size in enumerate((10, 10, 60, 10))]
    assert [[step.index for step in half] for half in halves(steps)] == [[0, 1], [2, 3]]
    assert halves([Step(4, "look", "abcdef")]) == [(Step(4, "look", "abc"),), (Step(4, "", "def"),)]
    assert halves([Step(4, "abcdef", "x")]) == [(Step(4, "abc", "x"),), (Step(4, "def", ""),)]
    assert halves([Step(4, "", "x")]) == []


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=6))
def test_halves_hold_the_whole_passage(texts: list[tuple[str, str]]) -> None:
    passage = tuple(Step(k, *pair) for k, pair in enumerate(texts))
    divided = [step for half in halves(passage) for step in half] or list(passage)
    assert "".join(step.action for step in divided) == "".join(step.action for step in passage)
    assert "".join(step.observation for step in divided) == "".join(step.observation for step in passage)


def test_a_passage_without_text_is_not_asked_about() -> None:
    assert extract([], [Step(0, "", ""), Step(1, "", "")]) == []


@pytest.mark.parametrize("concurrency", [1, 4])
def test_triples_are_anchored_to_the_step_that_states_them(concurrency: int) -> None:
    state = graph_memory(always(ScriptedModel(extracting)), concurrency).build(walk(12))
    edges = [(source, data["step"]) for source, _, data in state.graph.edges(data=True)]
    assert edges == [(f"room number {k}", k) for k in range(12)]


@pytest.mark.parametrize("name", [name for name in MISBEHAVIOURS if name != "timeout"])
def test_no_misbehaviour_stops_the_build(name: str) -> None:
    def spoilt(messages: Sequence[Message], seed: int) -> Reply:
        return MISBEHAVIOURS[name](str(extracting(messages, seed)))

    structure = graph_memory(always(ScriptedModel(spoilt)))
    memory = structure.build(walk(6))
    structure.retrieve(memory, "What lies in the long hall?")


def test_nothing_of_the_prompts_gets_into_a_graph() -> None:
    def echo(messages: Sequence[Message], seed: int) -> Reply:
        return messages[-1].content

    assert graph_memory(always(ScriptedModel(echo))).build(walk(4)).graph.number_of_edges() == 0


def test_what_the_passage_does_not_speak_of_is_left_out() -> None:
    model = ScriptedModel(
        [
            '{"entities": ["person", "place", "KEY", "Schubladenknopf"]}',
            '{"triples": [["person", "lives in", "place"], ["agent", "takes", "Key"], ["->", "is", "#"]]}',
        ]
    )
    found = LlmExtractor(always(model)).extract(PASSAGE)
    assert found == [Triple("agent", "takes", "Key"), Triple("->", "is", "#")]
    assert model.asked[1][1].content == '{"entities": ["KEY"]}'


def test_scripts_without_spaces_are_grounded_too() -> None:
    passage = [Step(0, "", "你在抽屉里看到一把钥匙。")]
    assert extract(['{"entities": ["钥匙"]}', '{"triples": [["抽屉", "有", "钥匙"]]}'], passage) == [
        Triple("抽屉", "有", "钥匙")
    ]


@pytest.mark.parametrize("error", [ModelError("HTTP 500"), RuntimeError("killed")])
def test_a_build_that_broke_off_asks_only_for_what_is_missing(tmp_path, error: BaseException) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    broken = [True]
    answered: list[tuple[str, ...]] = []

    def reply(messages: Sequence[Message], seed: int) -> Reply:
        if broken[0] and len(messages) > 1 and "room number 7 " in messages[0].content:
            raise error
        answered.append(tuple(message.content for message in messages))
        return extracting(messages, seed)

    def chat(role: str, schema: object = None) -> ChatModel:
        return Remembering(ScriptedModel(reply), cache)

    with pytest.raises(type(error)):
        graph_memory(chat).build(walk(12))
    before = len(answered)
    broken[0] = False
    structure = graph_memory(chat)
    state = structure.build(walk(12))
    assert len(answered) == len(set(answered)) == 24
    assert before == 23 or not isinstance(error, ModelError)
    again = structure.build(walk(12))
    assert structure.encode(again).payload == structure.encode(state).payload
    assert len(answered) == 24
