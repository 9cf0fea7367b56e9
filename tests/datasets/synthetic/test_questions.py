"""Properties every generated question has, whatever the seed."""

import re
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from nltk.stem import PorterStemmer

from mesa_pipeline.config import SyntheticSettings
from mesa_pipeline.datasets.synthetic import KINDS, DesignedEpisode, design_episode
from mesa_pipeline.datasets.synthetic.environments import ENVIRONMENTS, Environment
from mesa_pipeline.datasets.synthetic.wording import Topic
from mesa_pipeline.subsets import STRUCTURE_CODES

QA_TYPES = {"recall", "causal", "state-updating", "abstraction"}
FUNCTION_WORDS = """
a about above after again all am an and any are as at be because been before being below between both but by can did do
does down each for from further had has have having he her here hers him his how i if in into is it its just me more
most my no nor not now of off on once only or other our out over own same she should so some such than that the their
them then there these they this those through till to too under until up very was we were what when where which while
who whom whose why will with would you your may must
"""


@st.composite
def episodes(draw: st.DrawFn) -> DesignedEpisode:
    settings = SyntheticSettings(
        seed=draw(st.integers(0, 10**9)),
        episodes=1,
        steps=draw(st.one_of(st.integers(10, 20), st.integers(21, 150))),
        questions=draw(st.integers(4, 40)),
    )
    return design_episode(settings, draw(st.integers(0, 200)))


@given(episodes())
@hypothesis_settings(max_examples=150, deadline=None)
def test_evidence_exists_and_holds_the_facts(made: DesignedEpisode) -> None:
    for question in made.designed:
        steps = question.draft.steps
        assert steps
        assert list(steps) == sorted(set(steps))
        assert 0 <= steps[0] <= steps[-1] <= made.history.last
        records = [made.history.text(step) for step in steps]
        for fact in question.draft.facts:
            assert any(fact in record for record in records), (question, fact)


@given(episodes())
@hypothesis_settings(max_examples=150, deadline=None)
def test_questions_are_distinct_typed_and_do_not_give_the_answer_away(made: DesignedEpisode) -> None:
    questions = made.episode.questions
    assert {question.qa_type for question in questions} == QA_TYPES
    assert len({question.text for question in questions}) == len(questions)
    for question in questions:
        assert question.answer
        assert question.answer.casefold() not in question.text.casefold()
        assert "{" not in question.text
        assert question.text[0] == question.text[0].upper()


@given(episodes())
@hypothesis_settings(max_examples=60, deadline=None)
def test_step_references_lie_within_the_episode(made: DesignedEpisode) -> None:
    for question in made.episode.questions:
        named = re.findall(r"\bsteps? (\d+)(?:(?:-| and | to step )(\d+))?", question.text)
        assert all(int(number) <= made.history.last for pair in named for number in pair if number)


@given(episodes())
@hypothesis_settings(max_examples=60, deadline=None)
def test_identifiers_occur_at_one_step_alone(made: DesignedEpisode) -> None:
    for failure in made.history.failures:
        found = [
            step.index
            for step in made.history.steps
            if re.search(rf"\b{re.escape(failure.event.identifier)}\b", made.history.text(step.index))
        ]
        assert found == [failure.step]


def test_a_set_of_episodes_exercises_every_kind() -> None:
    settings = SyntheticSettings(seed=0, episodes=1, steps=40, questions=40)
    seen = {question.kind.name for number in range(60) for question in design_episode(settings, number).designed}
    assert seen == {kind.name for kind in KINDS}


def test_kinds_are_designed_for_different_structures() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    designs = {kind.structures for kind in KINDS}
    assert {("S",), ("T",), ("G",), ("V",), ("R",)} <= designs
    assert sum(len(design) == 2 for design in designs) >= 4
    assert all(set(design) <= set(STRUCTURE_CODES) for design in designs)
    assert any(kind.misled_by_more for kind in KINDS)


def test_repeated_checks_return_different_results() -> None:
    """What makes step references necessary: the action named in the question was taken at several steps."""
    for number in range(12):
        made = design_episode(SyntheticSettings(seed=5, episodes=1, steps=80, questions=40), number)
        results = defaultdict(set)
        for step in made.history.steps:
            results[step.action].add(step.observation)
        for question in made.designed:
            if question.kind.name == "step_reading":
                assert len(results[made.history.steps[question.draft.steps[0]].action]) > 1


def test_chains_rest_on_two_steps_and_do_not_name_the_link() -> None:
    found = 0
    for number in range(24):
        made = design_episode(SyntheticSettings(seed=2, episodes=1, steps=60, questions=40), number)
        for question in (question for question in made.designed if question.kind.name == "relation_chain"):
            middle, _ = question.draft.facts
            assert middle.casefold() not in question.draft.text.casefold()
            assert len(question.draft.steps) == 2
            found += 1
    assert found > 20


ALL_TOPICS = [
    pytest.param(topic, id=f"{environment.domain}-{topic.key}")
    for environment in ENVIRONMENTS
    for topic in environment.wording.topics
]


@pytest.mark.parametrize("topic", ALL_TOPICS)
def test_paraphrases_share_no_content_word(topic: Topic) -> None:
    stem = PorterStemmer().stem
    said = {stem(word) for word in re.findall(r"[a-z]+", topic.statement.lower())} - {
        stem(word) for word in FUNCTION_WORDS.split()
    }
    for text in topic.questions:
        asked = {stem(word) for word in re.findall(r"[a-z]+", text.lower())} - {stem(word) for word in FUNCTION_WORDS.split()}
        assert not said & asked
        for answer in topic.answers:
            assert answer.casefold() not in text.casefold()


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda environment: environment.domain)
def test_topics_of_an_environment_are_distinct(environment: Environment) -> None:
    keys = [topic.key for topic in environment.wording.topics]
    assert len(set(keys)) == len(keys) >= 8
    assert all(len(set(topic.answers)) >= 3 for topic in environment.wording.topics)
