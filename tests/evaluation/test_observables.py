"""Features that a policy could compute itself, and predicates over them."""

import json
import re
import time
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.evaluation.observables import LABELS, QUESTION_FORMS, Condition, Predicate, observable_features
from mesa_pipeline.outcomes import QuestionInfo
from mesa_pipeline.policies.base import PolicyInput, policy_input
from mesa_pipeline.subsets import STRUCTURE_CODES
from mesa_pipeline.types import Preview

HOSTILE = (
    "",
    "\x00\ud800\u202e {q} {{0}} %s \\",
    "step " * 40,
    "step 99999999999999999999 and turn \u0663 to \u0664",
    "\u201c" * 90,
    "how many \n\n WHY " * 20,
    "İstanbul ŞTEP 3",
)
texts = st.one_of(
    st.text(max_size=80), st.sampled_from(HOSTILE), st.sampled_from(["why step 3-9?", "At steps 4 and 5, list 'it'"])
)
previews = st.builds(
    Preview,
    text=texts,
    n_items=st.integers(0, 9),
    tokens=st.integers(0, 9999),
    top_score=st.none() | st.floats(-5, 5),
    scores=st.just(()),
    step_ids=st.just(()),
)
infos = st.builds(
    QuestionInfo,
    id=st.just("e#0"),
    episode_id=st.just("e"),
    text=texts,
    domain=st.sampled_from(["", "Game", 'it\'s "x"\\\n\ud800']),
    task_type=st.sampled_from(["", "t"]),
    qa_type=st.none() | st.sampled_from(["recall", "causal"]),
    steps=st.integers(0, 500),
    previews=st.dictionaries(st.sampled_from(STRUCTURE_CODES), previews, max_size=2),
)


def ask(text: str, meta: Mapping[str, str] | None = None, steps: int = 20) -> PolicyInput:
    return PolicyInput(text, meta or {}, steps)


def conditions_on(features: Mapping[str, str | float | bool]) -> list[Condition]:
    return [
        Condition(name, comparison, value)
        for name, value in features.items()
        for comparison in (("=",) if isinstance(value, (bool, str)) else ("<=", ">"))
    ]


def test_what_a_question_shows() -> None:
    features = observable_features(
        ask("Why did it fail between steps 12 and 40, and what was the state at step 7?", {"domain": "Game"})
    )
    assert {name for name in QUESTION_FORMS if features[name]} == {"asks_why", "asks_change"}
    assert features["domain"] == "Game"
    assert (features["named_steps"], features["named_span"], features["steps"], features["words"]) == (3, 33, 20, 17)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("How many times did it jump?", "asks_how_many"),
        ("Explain the loop.", "asks_why"),
        ("At which step was the key taken?", "asks_when"),
        ("When did Ann move?", "asks_when"),
        ("Where is the key?", "asks_where"),
        ("Who called?", "asks_who"),
        ("Which actions were taken?", "asks_action"),
        ("List the files.", "asks_list"),
        ("How did the state change?", "asks_change"),
        ("What exact value was read?", "asks_exact"),
        ("What would happen now?", "hypothetical"),
        ("Compare the runs.", "compares"),
        ("What came first?", "orders_events"),
        ("What is the overall strategy?", "asks_pattern"),
        ("What does 'go north' do?", "quotes"),
    ],
)
def test_forms(text: str, form: str) -> None:
    assert observable_features(ask(text))[form] is True
    assert observable_features(ask("It is red"))[form] is False


def test_previews_show_emptiness_size_and_overlap() -> None:
    shown = {"G": Preview("The RED key", 2, 31, 0.5, (0.5,), (3,)), "S": Preview("", 0, 0, None, (), ())}
    features = observable_features(PolicyInput("red key where?", {}, 9, shown))
    assert (features["G.items"], features["G.tokens"], features["G.top_score"]) == (2, 31, 0.5)
    assert features["G.overlap"] == pytest.approx(2 / 3)
    assert (features["S.items"], features["S.overlap"]) == (0, 0)
    assert "S.top_score" not in features
    assert not any(name.startswith("T.") for name in features)


@settings(deadline=None)
@given(infos, st.booleans())
def test_the_same_of_a_question_in_the_table_and_as_a_policy_sees_it(info: QuestionInfo, labels: bool) -> None:
    seen = policy_input(info, labels)
    rebuilt = PolicyInput(info.text, dict(seen.meta), info.steps, dict(info.previews))
    assert observable_features(seen) == observable_features(rebuilt)
    assert labels or not LABELS.keys() & observable_features(seen).keys()


@settings(max_examples=40, deadline=None)
@given(infos, infos)
def test_the_expression_says_what_the_condition_does(asked: QuestionInfo, other: QuestionInfo) -> None:
    """Every condition that is true or false of one question is evaluated on it and on another one, by its source text."""
    for condition in conditions_on(observable_features(policy_input(asked, True))):
        for question in (policy_input(asked, True), policy_input(other, True)):
            names = {
                "re": re,
                "q": question.to_json(),
                "__builtins__": {},
                "len": len,
                "set": set,
                "int": int,
                "max": max,
                "min": min,
            }
            assert bool(eval(condition.expression, names)) == condition.holds(observable_features(question)), condition


def test_an_absent_feature_meets_no_condition() -> None:
    features = observable_features(ask("Why?"))
    for condition in (Condition("domain", "=", "Game"), Condition("G.items", "<=", 3.0), Condition("G.items", ">", -1.0)):
        assert not condition.holds(features)


def test_both_conditions_must_hold() -> None:
    predicate = Predicate((Condition("asks_why", "=", True), Condition("steps", ">", 10.0)))
    assert predicate.holds(observable_features(ask("Why?", steps=11)))
    assert not predicate.holds(observable_features(ask("Why?", steps=10)))
    assert not predicate.holds(observable_features(ask("What?", steps=11)))
    assert predicate.words == "the question asks for a reason and the trajectory has more than 10 steps"


def test_plain_words() -> None:
    assert Condition("asks_why", "=", False).words == "the question does not ask for a reason"
    assert Condition("hypothetical", "=", False).words == "the question is not hypothetical"
    assert Condition("qa_type", "=", "recall").words == "the capability is recall"
    assert Condition("G.items", "<=", 0.0).words == "the graph evidence has at most 0 pieces"
    for name in QUESTION_FORMS:
        assert Condition(name, "=", False).words.startswith("the question ")


@settings(max_examples=40, deadline=None)
@given(infos)
def test_predicates_survive_json(info: QuestionInfo) -> None:
    for condition in conditions_on(observable_features(policy_input(info, True))):
        predicate = Predicate((condition,))
        assert Predicate.from_json(json.loads(json.dumps(predicate.to_json()))) == predicate


@pytest.mark.parametrize("count", [0, 3])
def test_a_predicate_has_one_condition_or_two(count: int) -> None:
    with pytest.raises(ValueError, match="1 to 2 conditions"):
        Predicate((Condition("asks_why", "=", True),) * count)


def test_long_questions_take_linear_time() -> None:
    started = time.perf_counter()
    for character in ("\u201c", "step ", "what ", "how ", "'", " ", "number ", "7", "step 7 - "):
        observable_features(ask(character * 20_000))
    assert time.perf_counter() - started < 20  # under a second here
