import pytest

from mesa_pipeline.errors import MissingDependency, ModelError
from mesa_pipeline.llm import Completion, Message
from mesa_pipeline.llm.scripted import MISBEHAVIOURS, ScriptedModel

ASK = (Message("system", "be brief"), Message("user", "say one thing"))


def test_replies_come_in_the_order_of_the_script_with_words_for_tokens():
    model = ScriptedModel(["first", "second reply"])
    assert model.complete(ASK) == Completion("first", prompt_tokens=5, completion_tokens=1)
    assert model.complete(ASK[1:]) == Completion("second reply", prompt_tokens=3, completion_tokens=2)
    assert model.asked == (ASK, ASK[1:])


def test_a_script_at_its_end_says_so():
    model = ScriptedModel([], name="mute")
    with pytest.raises(ModelError, match="the script of 'mute' holds 0 replies"):
        model.complete(ASK)


def test_an_exception_in_the_script_is_raised():
    model = ScriptedModel([MissingDependency("no endpoint"), "back again"])
    with pytest.raises(MissingDependency, match="no endpoint"):
        model.complete(ASK)
    assert model.complete(ASK).text == "back again"


def test_a_function_sees_messages_and_seed():
    model = ScriptedModel(lambda messages, seed: f"{messages[-1].content} {seed}")
    assert [model.complete(ASK, seed).text for seed in (7, 0, 7)] == ["say one thing 7", "say one thing 0", "say one thing 7"]


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_every_misbehaviour_spoils_a_reply(name):
    good = "```python\nx = 1\n\n\ndef select(state, q):\n    return ['S']\n```"
    spoilt = MISBEHAVIOURS[name](good)
    assert spoilt != good
    if isinstance(spoilt, Exception):
        with pytest.raises(ModelError):
            ScriptedModel([spoilt]).complete(ASK)
    else:
        assert ScriptedModel([spoilt]).complete(ASK).text == spoilt
