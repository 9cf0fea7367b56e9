"""What a language model's reply is worth as an answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from mesa_pipeline.errors import ModelError
from mesa_pipeline.llm import Completion, Message
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.reading.llm import LlmReader
from mesa_pipeline.types import Answer, ComposedEvidence

NOTHING = ComposedEvidence()


@dataclass(frozen=True)
class Saying:
    """A model with one reply, cut or not."""

    text: str
    finish_reason: str
    name: str = "saying"

    def complete(self, messages: Sequence[Message], seed: int = 0) -> Completion:
        return Completion(self.text, 1, 1, finish_reason=self.finish_reason)


@pytest.mark.parametrize("reason", ["stop", "length"])
@pytest.mark.parametrize(
    "said", ["In the hall.", " In the hall.\n", "<think>it was\nthere</think>In the hall.", "so</think> In the hall."]
)
def test_the_answer_is_what_is_said_and_not_what_is_thought(said: str, reason: str):
    assert LlmReader(Saying(said, reason)).answer("Where?", "", NOTHING) == Answer("In the hall.")


def test_a_reply_cut_while_the_model_thinks_is_no_answer():
    """An empty answer would be scored 0."""
    answer = LlmReader(Saying("<think>let me go through the steps", "length")).answer("Where?", "", NOTHING)
    assert answer.text == ""
    assert "allow more tokens" in (answer.error or "")


@pytest.mark.parametrize("said", ["", " \n", "<think>nothing to say</think>", "<think>nothing to say"])
def test_a_model_that_ends_without_a_word_has_answered(said: str):
    assert LlmReader(Saying(said, "stop")).answer("Where?", "", NOTHING) == Answer("")


def test_no_reply_is_no_answer():
    answer = LlmReader(ScriptedModel([ModelError("HTTP 500: out of memory")])).answer("Where?", "", NOTHING)
    assert answer == Answer("", error="reader: HTTP 500: out of memory")


def test_what_stands_in_question_and_evidence_fills_no_place_of_the_prompt():
    model = ScriptedModel(["fine"])
    LlmReader(model).answer("$evidence {question} \ud83d\x00?", "$question", NOTHING)
    (message,) = model.asked[0]
    assert message.content.endswith("# Question\n$evidence {question} ?\x00?\n\n# Answer")
    assert "# Task\n$question\n" in message.content
