"""Summaries by a language model: what it is asked, how its reply is read, and that no segment is ever lost."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ModelError
from mesa_pipeline.llm import ChatModel, Message, OpenChat
from mesa_pipeline.llm.cache import ReplyCache
from mesa_pipeline.llm.scripted import MISBEHAVIOURS, Reply, Script, ScriptedModel
from mesa_pipeline.structures.extractive_summary import ExtractiveSummarizer
from mesa_pipeline.structures.llm_summary import LlmSummarizer, read_summary
from mesa_pipeline.structures.summary import SummaryMemory
from mesa_pipeline.types import Step, Trajectory
from tests.structures.models import Remembering, always

REPOSITORY = Path(__file__).resolve().parents[2]
STEPS = (Step(3, "open drawer", "You see a key."), Step(4, "take key", "Taken: {key} costs $5."))


def summarizer(script: Script, max_chars: int = 2400) -> LlmSummarizer:
    return LlmSummarizer(always(ScriptedModel(script)), max_chars, ExtractiveSummarizer(max_chars, 500))


def memory(chat: OpenChat, concurrency: int = 4, window: int = 60) -> SummaryMemory:
    return SummaryMemory(LlmSummarizer(chat, 2400, ExtractiveSummarizer(2400, 500)), window, 2400, concurrency)


def walk(count: int) -> Trajectory:
    return Trajectory(
        "t", "Find the key.", tuple(Step(k, f"go {k}", f"room number {k} of the long hall") for k in range(count))
    )


def test_the_request_holds_task_steps_and_length() -> None:
    model = ScriptedModel(["SUMMARY:\nStep 3: the drawer is open"])
    told = LlmSummarizer(always(model), 600, ExtractiveSummarizer(600, 500)).summarize("Find $the {key}", STEPS, None)
    assert told == "Step 3: the drawer is open"
    (message,) = model.asked[0]
    assert message.role == "user"
    for text in ("Find $the {key}", "Step 4\nAction: take key\nObservation: Taken: {key} costs $5.", "At most 100 words"):
        assert text in message.content
    assert message.content.index("Find $the {key}") < message.content.index("Step 3\n")


def test_the_preceding_step_is_not_shown() -> None:
    model = ScriptedModel(["SUMMARY: Step 3: x"])
    LlmSummarizer(always(model), 600, ExtractiveSummarizer(600, 500)).summarize("", STEPS, Step(2, "sing", "la la la"))
    assert "la la la" not in model.asked[0][0].content


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("SUMMARY:\nStep 1: a\nStep 2: b", "Step 1: a\nStep 2: b"),
        ("Let me see.\n\n**SUMMARY:**\n\nStep 1: a", "Step 1: a"),
        ("## Summary: \nStep 1: a", "Step 1: a"),
        ("summary: Step 1: a", "Step 1: a"),
        ("I write SUMMARY: first\nSUMMARY:\nStep 1: a\nSUMMARY:\n", "Step 1: a"),
        ("Step 1: no marker at all", "Step 1: no marker at all"),
        ("The agent took the key.", "The agent took the key."),
        ("<think>SUMMARY:\nStep 9: thought</think>\nSUMMARY:\nStep 1: said", "Step 1: said"),
        ("thoughts</think>Step 1: said", "Step 1: said"),
        ("```\nSUMMARY:\nStep 1: a\n```", "Step 1: a"),
        ("- **Step 1:** a\n* steps 2–4: b\n1. Turn 5: c\n### Step #6\nd", "Step 1: a\nSteps 2-4: b\nStep 5: c\nStep 6\nd"),
        ("Steps 2 to 4: b", "Steps 2-4: b"),
        ("Stepping 3 times", "Stepping 3 times"),
        ("<think>never closed", ""),
        (" \n ", ""),
    ],
)
def test_replies_are_read(reply: str, expected: str) -> None:
    assert read_summary(reply) == expected


def test_a_loop_of_sentences_is_cut_short() -> None:
    looped = "SUMMARY:\nStep 1: the door opens.\n" + "The agent keeps looking for the key in the drawer. " * 500
    told = read_summary(looped)
    assert told.startswith("Step 1: the door opens.\nThe agent keeps looking")
    assert len(told) < 150
    assert len(read_summary("go on. " * 500)) < 100


def test_rows_of_figures_are_no_loop() -> None:
    board = "Step 1: board " + "[0, 0, 0, 0], " * 8
    assert read_summary(board) == board.strip()


def test_a_loop_that_varies_is_bounded_by_the_memory() -> None:
    reply = "SUMMARY:\n" + "\n".join(f"Step {k}: the agent waits for the train" for k in range(500))
    evidence = memory(always(ScriptedModel(lambda messages, seed: reply))).build(walk(1))
    assert len(evidence.segments[0].text) <= 2400


def test_an_empty_reply_is_asked_for_once_more_in_other_words() -> None:
    model = ScriptedModel(["", "SUMMARY:\nStep 3: a"])
    assert LlmSummarizer(always(model), 600, ExtractiveSummarizer(600, 500)).summarize("", STEPS, None) == "Step 3: a"
    first, second = (asked[0].content for asked in model.asked)
    assert second.startswith(first)
    assert second != first


def test_a_segment_the_model_has_no_words_for_is_quoted_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    told = summarizer(["", "<think>hm"]).summarize("Find the key", STEPS, None)
    excerpts = ExtractiveSummarizer(2400, 500).summarize("Find the key", STEPS, None)
    assert told == f"Excerpts of steps 3-4, which the model left without a summary:\n{excerpts}"
    assert "steps 3-4" in caplog.text


def test_a_segment_without_text_is_not_asked_about() -> None:
    model = ScriptedModel([])
    built = memory(always(model)).build(Trajectory("t", "", tuple(Step(k, "", "") for k in range(4))))
    assert model.asked == ()
    assert [segment.text for segment in built.segments] == [f"Steps {k}-{k}: (nothing noted)" for k in range(4)]


@pytest.mark.parametrize("name", [name for name in MISBEHAVIOURS if name != "timeout"])
def test_no_misbehaviour_loses_a_segment(name: str) -> None:
    spoiled = MISBEHAVIOURS[name]("SUMMARY:\nStep 0: the agent goes on")
    built = memory(always(ScriptedModel(lambda messages, seed: spoiled))).build(walk(4))
    assert [segment.first for segment in built.segments] == [0, 1, 2, 3]
    assert all(segment.text and len(segment.text) <= 2400 for segment in built.segments)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_segments_stand_in_time_order_whatever_comes_first(concurrency: int) -> None:
    def note(messages: list[Message], seed: int) -> Reply:
        step = messages[0].content.rpartition("Segment: steps ")[2].split()[0]
        return f"SUMMARY:\nStep {step}: noted"

    built = memory(always(ScriptedModel(note)), concurrency).build(walk(20))
    assert [segment.text for segment in built.segments] == [f"Step {k}: noted" for k in range(20)]
    assert [segment.cited for segment in built.segments] == [(k,) for k in range(20)]


@pytest.mark.parametrize("error", [ModelError("HTTP 500"), RuntimeError("killed")])
def test_a_build_that_broke_off_asks_only_for_what_is_missing(tmp_path, error: BaseException) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    broken = [True]
    answered: list[str] = []

    def note(messages: list[Message], seed: int) -> Reply:
        request = messages[0].content
        if broken[0] and "room number 12 " in request:
            raise error
        answered.append(request)
        return f"SUMMARY:\nnoted {len(request)}"

    def chat(role: str, schema: object = None) -> ChatModel:
        return Remembering(ScriptedModel(note), cache)

    with pytest.raises(type(error)):
        memory(chat).build(walk(20))
    before = len(answered)
    broken[0] = False
    built = memory(chat).build(walk(20))
    assert len(answered) == len(set(answered)) == 20
    assert before == 19 or not isinstance(error, ModelError)
    assert built == memory(chat, concurrency=1).build(walk(20))
    assert len(answered) == 20


BUILD = """
import sys, time
from pathlib import Path
from mesa_pipeline.llm.cache import ReplyCache
from mesa_pipeline.llm.scripted import ScriptedModel
from tests.structures.models import Remembering
from tests.structures.test_llm_summary import memory, walk

folder = Path(sys.argv[1])

def note(messages, seed):
    time.sleep(0.05)
    step = messages[0].content.rpartition("Segment: steps ")[2].split()[0]
    with (folder / "log").open("a") as log:
        log.write(f"{step}\\n")
    return "SUMMARY:\\nStep " + step + ": noted"

model = Remembering(ScriptedModel(note), ReplyCache(folder / "replies.sqlite"))
memory(lambda role, schema=None: model, concurrency=2).build(walk(40))
"""


def test_a_killed_build_asks_again_only_for_what_was_in_flight(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def answered() -> list[str]:
        return log.read_text().split() if log.exists() else []

    command = [sys.executable, "-c", BUILD, str(tmp_path)]
    process = subprocess.Popen(command, cwd=REPOSITORY)
    while len(answered()) < 8:
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert len(answered()) < 40
    subprocess.run(command, cwd=REPOSITORY, check=True)
    assert sorted(set(answered()), key=int) == [str(k) for k in range(40)]
    assert len(answered()) <= 40 + 2


def test_the_failure_says_how_many_segments_are_missing() -> None:
    chat = always(ScriptedModel(lambda messages, seed: ModelError("HTTP 503")))
    with pytest.raises(ModelError, match="20 of 20 requests got no reply, the first: HTTP 503"):
        memory(chat).build(walk(20))


def test_model_and_length_are_part_of_the_identity(settings: Settings) -> None:
    def identity(model: str, max_chars: int) -> object:
        fallback = ExtractiveSummarizer(max_chars, 500)
        return LlmSummarizer(always(ScriptedModel([], model)), max_chars, fallback).identity()

    assert identity("a", 600) == identity("a", 600)
    assert len({repr(identity(*which)) for which in (("a", 600), ("b", 600), ("a", 1200))}) == 3
