import pytest

from mesa_pipeline.reading.passages import words
from mesa_pipeline.reading.questions import FORMS, stem, stem_pairs, view_question


@pytest.mark.parametrize(
    "family", ["fail fails failed failing", "move moves moved moving", "run runs running", "class classes"]
)
def test_inflections_share_a_stem(family):
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize(("one", "other"), [("bed", "be"), ("step", "stepfather"), ("class", "clas"), ("42", "4")])
def test_different_words_keep_different_stems(one, other):
    assert stem(one) != stem(other)


def test_a_question_names_steps_and_things():
    view = view_question("Which actions were performed on cup 3 between step 4 and step 6?")
    assert view.steps == {4, 5, 6}
    assert view.asks_for_actions
    assert stem_pairs(words("take cup 3 from shelf 1")) & view.pairs == {("cup", "3")}
    assert not stem_pairs(words("step 4")) & view.pairs


def test_a_history_reaches_back_to_the_start():
    assert view_question("What was the location history of cup 1 until step 3?").steps == {0, 1, 2, 3}
    assert view_question("What is the state of cup 1 at step 2 and its prior change history?").steps == {0, 1, 2}


def test_what_is_excluded_is_no_thing_asked_for():
    view = view_question("Before step 9, which actions were done (excluding 'go to' actions)?")
    assert view.excluded == "go to"
    assert ("go", "to") not in view.pairs


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("At which step did it fail?", "asks_step"),
        ("How many clicks were there?", "asks_count"),
        ("Why did it stop?", "asks_why"),
        ("If it had waited, would it work?", "hypothetical"),
        ("Who called?", "asks_who"),
        ("Where is the key?", "asks_place"),
    ],
)
def test_forms_are_seen(question, form):
    assert view_question(question).forms[form] == 1.0
    assert set(view_question(question).forms) == set(FORMS)


@pytest.mark.parametrize("question", ["", " ", "\x00", "\ud83d?", "{}", "step " * 50_000, "\u202eabc"])
def test_any_question_can_be_viewed(question):
    assert view_question(question).text == question
