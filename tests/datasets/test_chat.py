from typing import Any

import pytest

from mesa_pipeline.datasets.chat import ChatTrace, read_chat
from mesa_pipeline.datasets.rows import Fields
from mesa_pipeline.errors import DataError


def read(*messages: dict[str, Any]) -> ChatTrace:
    return read_chat(Fields({"messages": list(messages)}, "log.json").objects("messages", ""))


def assistant(content: Any = None, *calls: tuple[str, str, Any]) -> dict[str, Any]:
    tool_calls = [{"id": i, "type": "function", "function": {"name": name, "arguments": a}} for i, name, a in calls]
    return {"role": "assistant", "content": content} | ({"tool_calls": tool_calls} if tool_calls else {})


def result(call_id: str | None, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def steps_of(*messages: dict[str, Any]) -> list[tuple[str, str]]:
    trace = read({"role": "user", "content": "Go."}, *messages)
    assert [step.index for step in trace.steps] == list(range(len(trace.steps)))
    return [(step.action, step.observation) for step in trace.steps]


def test_a_call_is_the_action_and_its_result_the_observation() -> None:
    trace = read(
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "List the files."},
        assistant("I look.", ("c1", "run", '{"cmd": "ls"}')),
        result("c1", "a.txt"),
        assistant("Done: a.txt"),
    )
    assert trace.task == "List the files."
    assert [(step.index, step.action, step.observation) for step in trace.steps] == [
        (0, 'I look.\nrun({"cmd": "ls"})', "a.txt"),
        (1, "Done: a.txt", ""),
    ]


def test_parallel_results_are_matched_by_id_whatever_their_order() -> None:
    calls = assistant(None, ("c1", "read", {"file": "a"}), ("c2", "read", {"file": "b"}))
    assert steps_of(calls, result("c2", "B"), result("c1", "A")) == [
        ('read({"file": "a"})\nread({"file": "b"})', "read: A\nread: B")
    ]


def test_a_late_result_goes_to_the_call_it_answers() -> None:
    steps = steps_of(
        assistant(None, ("c1", "slow", "")), assistant(None, ("c2", "fast", "")), result("c1", "1"), result("c2", "2")
    )
    assert steps == [("slow()", "1"), ("fast()", "2")]


def test_an_id_used_again_means_the_latest_call() -> None:
    first, second = assistant(None, ("call_0", "go", "1")), assistant(None, ("call_0", "go", "2"))
    assert steps_of(first, result("call_0", "A"), second, result("call_0", "B")) == [("go(1)", "A"), ("go(2)", "B")]


def test_results_without_ids_answer_calls_in_order() -> None:
    calls = assistant(None, ("", "one", ""), ("", "two", ""))
    assert steps_of(calls, result(None, "1"), result(None, "2")) == [("one()\ntwo()", "one: 1\ntwo: 2")]
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    assert steps_of(legacy, {"role": "function", "name": "f", "content": "out"}) == [("f({})", "out")]


def test_later_words_of_the_user_are_observed() -> None:
    steps = steps_of(assistant("Which one?"), {"role": "user", "content": "The red one."}, assistant("Thanks."))
    assert steps == [("Which one?", "The red one."), ("Thanks.", "")]


def test_words_after_a_result_follow_it() -> None:
    steps = steps_of(assistant(None, ("c", "f", "")), {"role": "user", "content": "Hurry."}, result("c", "out"))
    assert steps == [("f()", "out\nHurry.")]


def test_a_second_user_message_before_any_action_is_a_step_of_its_own() -> None:
    assert steps_of({"role": "user", "content": "Wait."}, assistant("Yes.")) == [("", "Wait."), ("Yes.", "")]


def test_a_conversation_that_the_assistant_opens_has_no_task() -> None:
    trace = read(assistant("Hello, what shall I do?"), {"role": "user", "content": "Nothing."})
    assert trace.task == ""
    assert [(step.action, step.observation) for step in trace.steps] == [("Hello, what shall I do?", "Nothing.")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "image_url", "image_url": {"url": "data:..."}}, {"type": "text", "text": "b"}], "[image_url]\nb"),
        ([{"type": "refusal", "refusal": "No."}], "No."),
        (["a", None, {}], "a\n[part]"),
        ("\u0000\ud83d{x}", "\u0000\ud83d{x}"),
    ],
)
def test_content_may_be_text_or_parts(content: Any, text: str) -> None:
    assert steps_of(assistant(content)) == [(text, "")]


def test_an_empty_conversation_has_no_steps() -> None:
    assert read() == ChatTrace("", ())
    assert read({"role": "system", "content": "x"}) == ChatTrace("", ())


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"content": "x"}, r"field messages\[1\]\.role: expected one of .*, found nothing"),
        ({"role": "robot"}, r"field messages\[1\]\.role: .* found the text 'robot'"),
        ({"role": ["user"]}, r"field messages\[1\]\.role: .* found a list of 1"),
        ({"role": "assistant", "content": 5}, r"field messages\[1\]\.content: .* found the number 5"),
        ({"role": "assistant", "tool_calls": {}}, r"field messages\[1\]\.tool_calls: expected a list"),
        ({"role": "assistant", "tool_calls": [{}]}, r"field messages\[1\]\.tool_calls\[0\]\.function: expected an object"),
        ({"role": "assistant", "tool_calls": [{"function": {}}]}, r"tool_calls\[0\]\.function\.name: expected a text"),
        (result("c9", "x"), r"field messages\[1\]\.tool_call_id: .* found the text 'c9'"),
        (result(None, "x"), r"field messages\[1\]\.tool_call_id: .* found nothing"),
    ],
)
def test_a_malformed_message_is_named(message: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        read({"role": "user", "content": "Go."}, message)
