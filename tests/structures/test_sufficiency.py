"""The sufficiency check: what the model is shown, how strictly its verdict is read, and how much it may ask for."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.errors import ModelError
from mesa_pipeline.llm.scripted import MISBEHAVIOURS, Script, ScriptedModel
from mesa_pipeline.structures.sufficiency import (
    LlmSufficiencyChecker,
    Verdict,
    first_steps,
    read_verdict,
    read_whole_verdict,
)
from mesa_pipeline.types import Step
from tests.structures.models import always

CANDIDATES = (Step(3, "open {x}", "a $key"), Step(9, "look", "z" * 9000))


def steps_of(reply: str) -> list[int] | None:
    verdict = read_verdict(reply)
    return None if verdict is None else [step for part in verdict for step in part]


def request(script: Script, known: range = range(30), limit: int = 20) -> Sequence[int]:
    return LlmSufficiencyChecker(always(ScriptedModel(script)), limit, 8000).request("Where?", CANDIDATES, known)


@pytest.mark.parametrize(
    "reply",
    [
        "SUFFICIENT",
        "sufficient.",
        "**SUFFICIENT**",
        "1. SUFFICIENT",
        "> `SUFFICIENT`",
        "Verdict: SUFFICIENT",
        "SUFFICIENT: the key lay at step 3",
        "SUFFICIENT\nANSWER: at steps 4-9",
        "**Verdict:** SUFFICIENT",
        "<think>NEED_STEPS: 4-9</think>\nSUFFICIENT",
        "NEED_STEPS: 4\n\nOn reflection:\nSUFFICIENT",
        "NEED_CODE",
        "NEED_CODE: count the errors of steps 0-20",
        "**NEED_CODE:** count",
        "NEED_STEPS: 5\nNEED_CODE",
    ],
)
def test_verdicts_that_ask_for_nothing(reply: str) -> None:
    assert steps_of(reply) == []


@pytest.mark.parametrize(
    "reply",
    [
        "INSUFFICIENT",
        "**INSUFFICIENT**: step 5 is missing",
        "NOT SUFFICIENT",
        "The steps are not sufficient. Read step 5.",
        "Sufficient evidence is missing, read step 5",
        "SUFFICIENT? Hardly.",
        "SUFFICIENT, but also read step 5",
        "SUFFICIENTLY CLEAR",
        "I would answer SUFFICIENT or NEED_STEPS: 3, 4.",
        "NEED_STEPS:",
        "NEED_STEPS: <step numbers and ranges, separated by commas>",
        "NEED_STEPS: 3 more steps around the end",
        "NEED_STEPS: everything",
        "NEED_STEPS: 12345678901234567890",
        "<think>NEED_STEPS: 4-9",
        "",
        " \n ",
        "steps 3-8",
    ],
)
def test_what_is_no_verdict(reply: str) -> None:
    assert read_verdict(reply) is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("NEED_STEPS: 5", [5]),
        ("NEED_STEPS: step 5.", [5]),
        ("need_steps 5, 7", [5, 7]),
        ("NEED STEPS: 5 and 7", [5, 7]),
        ("2. NEED_GRAPH: turns 3, 7, 12, 18", [3, 7, 12, 18]),
        ("**NEED_GRAPH:** turn_8", [8]),
        ("- **NEED_STEPS**: `5`, `7`", [5, 7]),
        ("(B) NEED_STEPS: 5", [5]),
        ("Verdict: NEED_STEPS: 5", [5]),
        ("NEED_GRAPH: turns 3-8", [3, 4, 5, 6, 7, 8]),
        ("NEED_STEPS: step 5 to 7", [5, 6, 7]),
        ("NEED_STEPS: turn 5 to turn 7", [5, 6, 7]),
        ("NEED_STEPS: 8–6", [6, 7, 8]),
        ("NEED_GRAPH: turns 5 to 6, turns 15 to 16", [5, 6, 15, 16]),
        ("NEED_GRAPH: turn_8 before=3, after=0", [5, 6, 7, 8]),
        ("NEED_GRAPH: turn_5 before=2 after=1, turn_20 after=1", [3, 4, 5, 6, 20, 21]),
        ("NEED_STEPS: turn 1 before=5", [0, 1]),
        ("NEED_STEPS: [5, 7]", [5, 7]),
        ("NEED_STEPS: 5-6 (step 40 holds the end)", [5, 6]),
        ("NEED_STEPS: 5 because step 40 shows the end", [5]),
        ("NEED_STEPS: 5 to see what step 4 led to", [5]),
        ("NEED_STEPS:\n- steps 5-6\n- step 9\n\nThe 7 others do not matter.", [5, 6, 9]),
        ("NEED_STEPS: 5\nNEED_STEPS: 9", [5, 9]),
        ("NEED_STEPS: 5\n\nNEED_STEPS: 9", [5, 9]),
        ("SUFFICIENT\nNo, wait.\nNEED_STEPS: 9", [9]),
        ("NEED_CODE would be too much.\nNEED_STEPS: 9", [9]),
        ("NEED_STEPS: 3\nThat was an example.\nNEED_STEPS: 9", [9]),
        ("I looked for step 40.\nNEED_STEPS: 9", [9]),
        ("<think>NEED_STEPS: 40</think>NEED_STEPS: 9", [9]),
    ],
)
def test_requests_are_read(reply: str, expected: list[int]) -> None:
    assert steps_of(reply) == expected


@given(st.text(alphabet="SUFICENTD_GRAPHstep0159-–,:.*#`\n ()<think/>", max_size=120))
def test_any_reply_can_be_read(reply: str) -> None:
    verdict = read_verdict(reply)
    assert verdict is None or all(len(part) > 0 for part in verdict)


def test_a_request_without_limits_is_limited() -> None:
    assert request(["NEED_STEPS: 0-999999999"], range(5, 500), 3) == [5, 6, 7]
    assert request(["NEED_STEPS: 100, 2-4, 3, 0-9"], limit=4) == [2, 3, 4, 0]
    assert first_steps([range(10**9), range(10**9)], range(4), 20) == [0, 1, 2, 3]


def test_the_model_is_shown_question_steps_and_how_many_there_are() -> None:
    model = ScriptedModel(["SUFFICIENT"])
    assert LlmSufficiencyChecker(always(model), 7, 8000).request("Where is {it}?", CANDIDATES, range(2, 41)) == []
    (message,) = model.asked[0]
    assert "Step 3\nAction: open {x}\nObservation: a $key\n\nStep 9\n" in message.content
    assert "numbered 2 to 40" in message.content
    assert "7 at most" in message.content
    assert message.content.endswith("# Question\nWhere is {it}?\n\n# Verdict")
    assert len(message.content) < 8000 + 2500


def test_the_prompt_itself_is_no_verdict() -> None:
    model = ScriptedModel(lambda messages, seed: messages[0].content.rpartition("# Steps")[0])
    assert LlmSufficiencyChecker(always(model), 7, 8000).request("Where?", CANDIDATES, range(30)) == []


def test_a_verdict_nobody_can_read_is_asked_for_once_more(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(["INSUFFICIENT", "NEED_STEPS: 5"])
    assert LlmSufficiencyChecker(always(model), 7, 8000).request("Where?", CANDIDATES, range(30)) == [5]
    assert model.asked[1][0].content.startswith(model.asked[0][0].content)
    assert model.asked[1] != model.asked[0]
    assert caplog.text == ""
    assert request(["INSUFFICIENT", ""]) == []
    assert "no readable verdict" in caplog.text


def test_a_check_that_failed_is_not_taken_for_an_answer() -> None:
    with pytest.raises(ModelError):
        request([ModelError("HTTP 500")])


@pytest.mark.parametrize("name", [name for name in MISBEHAVIOURS if name != "timeout"])
def test_no_misbehaviour_asks_for_too_much(name: str) -> None:
    assert len(request(lambda messages, seed: MISBEHAVIOURS[name]("NEED_STEPS: 0-999"))) <= 20


def test_all_that_changes_a_request_is_part_of_the_identity() -> None:
    def identity(model: str, limit: int, max_chars: int) -> str:
        return repr(LlmSufficiencyChecker(always(ScriptedModel([], model)), limit, max_chars).identity())

    assert len({identity(*which) for which in (("a", 7, 100), ("b", 7, 100), ("a", 8, 100), ("a", 7, 200))}) == 4


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("SUFFICIENT\nANSWER: a key", Verdict("sufficient", (), "a key")),
        ("**NEED_CODE:** count the `keys`\nof all drawers", Verdict("code", (), "count the `keys`\nof all drawers")),
        ("NEED_GRAPH: turn_5 before=2 after=1", Verdict("steps", (range(3, 7),), "turn_5 before=2 after=1")),
        ("NEED_GRAPH: 4\nNEED_GRAPH: 7", Verdict("steps", (range(4, 5), range(7, 8)), "7")),
        ("NEED_GRAPH: 4\nNEED_CODE", Verdict("code", (), "")),
        ("INSUFFICIENT", None),
    ],
)
def test_a_verdict_is_read_whole(reply: str, verdict: Verdict | None) -> None:
    assert read_whole_verdict(reply) == verdict
