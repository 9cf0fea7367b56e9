import pytest

from mesa_pipeline.errors import DataError, MissingDependency, ModelError
from mesa_pipeline.evaluation.judge import UNREADABLE, LlmJudge, read_verdict
from mesa_pipeline.evaluation.rewards import Judgement
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.types import Question

QUESTION = Question(id="q1", text="What opened the door?", answer="the brass key", qa_type="A")


def judged(*replies: str | Exception, asks: int = 3) -> tuple[Judgement, ScriptedModel]:
    model = ScriptedModel(replies)
    return LlmJudge(model, asks).judge(QUESTION, "find the vault", "a key"), model


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("yes", True),
        ("No.", False),
        ("**YES**", True),
        ("No, this is incorrect", False),
        ("Yes... actually no", False),
        ("nothing", None),
        ("yesterday", None),
        ("I cannot know", None),
        ("", None),
        ("<think>yes</think>no", False),
        ("<think>yes</think>", None),
        ("<think>yes, surely yes " + "and so on " * 100 + "yes", None),
        ("yes</think>no", False),
        ("verdict:\x00yes\u202e", True),
    ],
)
def test_the_last_whole_word_outside_of_reasoning_decides(reply: str, verdict: bool | None):
    assert read_verdict(reply) is verdict


def test_a_verdict_is_a_score_with_the_judges_words():
    assert judged("yes")[0] == Judgement(1.0, "yes")
    assert judged("The candidate is wrong: no")[0] == Judgement(0.0, "The candidate is wrong: no")


def test_the_judge_sees_all_it_needs():
    _, model = judged("no")
    prompt = model.asked[0][0].content
    assert all(part in prompt for part in ("What opened the door?", "the brass key", "a key", "find the vault"))


def test_an_unreadable_verdict_is_asked_for_in_other_words():
    """Asked the same again, a model at temperature 0 says the same, from the cache at that."""
    judgement, model = judged("Hm.", "", "yes")
    assert judgement == Judgement(1.0, "yes")
    assert [len(messages) for messages in model.asked] == [1, 3, 5]
    assert [message.content for message in model.asked[2][1::2]] == ["Hm.", "(nothing)"]
    assert [message.role for message in model.asked[2]] == ["user", "assistant", "user", "assistant", "user"]


def test_no_readable_verdict_is_no_score_and_never_0():
    judgement, model = judged("Hm.", "nothing", "x" * 5000)
    assert judgement == Judgement(None, "x" * 400, error=UNREADABLE)
    assert len(model.asked) == 3


def test_a_judge_that_fails_is_no_score_and_says_why():
    judgement, _ = judged("Hm.", ModelError("HTTP 500: no, 6 times"))
    assert judgement == Judgement(None, error="judge: HTTP 500: no, 6 times")


def test_a_judge_that_cannot_be_reached_stops_the_work():
    with pytest.raises(MissingDependency):
        judged(MissingDependency("the model cannot be reached"))


def test_a_question_without_a_reference_cannot_be_judged():
    with pytest.raises(DataError, match="'q2' has no reference answer"):
        LlmJudge(ScriptedModel([]), 1).judge(Question(id="q2", text="?", answer=None, qa_type="A"), "", "x")


def test_the_name_tells_how_often_it_is_asked():
    assert LlmJudge(ScriptedModel([]), 1).name != LlmJudge(ScriptedModel([]), 2).name
