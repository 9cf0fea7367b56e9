"""MemGPT's loop, with a scripted model: how often it asks, what it is shown, and what becomes of odd replies."""

import json
from typing import Any

import pytest

from mesa_pipeline.baselines.memgpt import FORCED, MALFORMED, MemGpt, read_action
from mesa_pipeline.baselines.passages import packed
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ModelError
from mesa_pipeline.llm.metering import metered, metered_chat
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.types import Step, Trajectory
from tests.contracts.test_structures import HashingEmbedder

HISTORY = Trajectory(
    "t", "find the cup", tuple(Step(n, f"look {n}", f"there is a thing{n} here. " + "filler " * 60) for n in range(30))
)


def search(query: str) -> str:
    return json.dumps({"action": "search", "query": query})


def answer(text: str) -> str:
    return json.dumps({"action": "answer", "answer": text})


def asked(settings: Settings, *replies: Any, history: Trajectory = HISTORY, **changes: Any) -> Any:
    model = ScriptedModel(replies)
    limits: list[int | None] = []

    def chat(role: str, schema: object, max_tokens: int | None) -> ScriptedModel:
        assert role == "recall"
        limits.append(max_tokens)
        return model

    changed = settings.baselines.memgpt.model_copy(update=changes)
    system = MemGpt(changed, metered_chat(chat), HashingEmbedder)
    with metered() as meter:
        evidence = system.retrieve(system.build(history), "Where is thing7?")
    return evidence, model.asked, meter.cost, limits


def test_it_searches_until_it_answers(settings: Settings) -> None:
    evidence, conversations, cost, _ = asked(settings, search("thing7 look 7"), search("thing9 look 9"), answer("here"))
    assert evidence.draft == "here"
    assert cost.calls == 3
    assert cost.notes == {"searches": 2}
    steps = {step for item in evidence.items for step in item.steps}
    assert {7, 9} <= steps
    assert len({item.text for item in evidence.items}) == len(evidence.items)
    assert [message.role for message in conversations[-1]] == ["user", "assistant", "user", "assistant", "user"]
    assert "find the cup" in conversations[0][0].content


def test_after_the_last_search_it_has_to_answer(settings: Settings) -> None:
    evidence, conversations, cost, _ = asked(settings, *[search(f"thing{n}") for n in range(5)], answer("forced"))
    assert evidence.draft == "forced"
    assert cost.calls == 6
    assert cost.notes == {"searches": 5, "forced answers": 1}
    assert conversations[-1][-1].content.endswith(FORCED.text)
    assert [message.role for message in conversations[-1]] == ["user", "assistant"] * 5 + ["user"]


def test_one_odd_reply_is_sent_back_the_second_ends_the_search(settings: Settings) -> None:
    evidence, conversations, cost, _ = asked(settings, "hm", search("thing7"), answer("x"))
    assert conversations[1][-1].content == MALFORMED.text
    assert (evidence.draft, cost.notes["replies that are no action"]) == ("x", 1)

    evidence, conversations, cost, _ = asked(settings, "hm", '{"action": "dance"}', "still nothing")
    assert evidence.draft is None
    assert evidence.is_empty
    assert cost.calls == 3


def test_a_search_shows_no_more_than_allowed(settings: Settings) -> None:
    _, conversations, _, _ = asked(settings, search("thing7"), answer("x"), shown_chars=100)
    shown = conversations[1][-1].content.partition("<passages>\n")[2].partition("\n</passages>")[0]
    assert len(shown) == 100


def test_replies_are_shorter_in_conversations(settings: Settings) -> None:
    talk = Trajectory("t", "", HISTORY.steps, "dialogue")
    assert asked(settings, answer("x"), history=talk)[3] == [256]
    assert asked(settings, answer("x"))[3] == [512]


def test_a_model_that_fails_is_not_a_wrong_answer(settings: Settings) -> None:
    with pytest.raises(ModelError):
        asked(settings, search("thing7"), ModelError("busy"))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('```json\n{"action": "search", "query": "cup"}\n```', ("search", "cup")),
        ('<think>{"action": "answer"}</think> I will: {"action": "answer", "answer": "on it"}', ("answer", "on it")),
        ('{"note": {}} {"action": "search", "query": "a"}', ("search", "a")),
        ('{"action": "search", "query": " "}', None),
        ('{"action": "search", "query": 3}', None),
        ('{"action": "answer"', None),
        ('{"action": ["search"], "query": "x"}', None),
        ("", None),
    ],
)
def test_actions_are_read(reply: str, expected: tuple[str, str] | None) -> None:
    assert read_action(reply) == expected


def test_passages_hold_whole_steps_where_they_can() -> None:
    steps = [Step(0, "a", "x" * 30), Step(1, "b", "y" * 30), Step(2, "c", "z" * 300), Step(3, "d", "")]
    passages = packed(steps, 130)
    assert [passage.steps for passage in passages] == [(0, 1), (2,), (2,), (2,), (3,)]
    assert all(len(passage.text) <= 130 for passage in passages)
    assert packed([], 10) == ()
