from mesa_pipeline.reading.action_lists import list_actions
from mesa_pipeline.reading.questions import view_question
from mesa_pipeline.reading.relevance import SectionMemory, gather
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step

STEPS = (
    Step(0, "look", "a shelf with cup 1 and cup 2"),
    Step(1, "take cup 1 from shelf 1", "you hold cup 1"),
    Step(2, "look", "the examine list: examine cup 2, examine shelf 1"),
    Step(3, "put cup 1 in sink 1", "done"),
    Step(4, "take cup 2 from shelf 1", "you hold cup 2"),
)


def listed(question: str, text: str | None = None, max_words: int = 100) -> str:
    text = "\n\n".join(serialize_step(step).text for step in STEPS) if text is None else text
    return list_actions(view_question(question), gather([SectionMemory().index(text)]), max_words)


def test_the_actions_of_a_range_stand_in_order():
    expected = "Step 1: take cup 1 from shelf 1; Step 2: look; Step 3: put cup 1 in sink 1"
    assert listed("What actions were performed between step 1 and step 3?") == expected


def test_a_named_thing_narrows_the_list():
    assert (
        listed("Which actions were performed on cup 1 before step 4?")
        == "Step 1: take cup 1 from shelf 1; Step 3: put cup 1 in sink 1"
    )
    assert listed("Until step 4, what were the location histories of cup 2?") == "Step 4: take cup 2 from shelf 1"


def test_excluded_actions_are_left_out():
    question = "Before step 4, which actions were performed (excluding 'look' actions)?"
    assert listed(question) == "Step 1: take cup 1 from shelf 1; Step 3: put cup 1 in sink 1"


def test_how_often_is_counted():
    question = "Until step 2, which actions were performed and how often?"
    assert listed(question) == "look (2 times); take cup 1 from shelf 1 (1 times)"


def test_the_longest_telling_of_a_step_wins():
    text = "Step 1: take ... shelf 1 -> news\n\nActions of the steps named:\n1: take cup 1 from shelf 1"
    assert listed("What actions were performed at step 1?", text) == "Step 1: take cup 1 from shelf 1"


def test_no_list_without_a_question_for_one_or_evidence_of_one():
    assert listed("Why was cup 1 taken at step 1?") == ""
    assert listed("What actions were performed between step 7 and step 9?") == ""
    assert listed("What actions were performed?") == ""
    assert listed("What actions were performed at step 1?", "") == ""


def test_a_list_is_bounded():
    assert listed("What actions were performed until step 4?", max_words=9) == "Step 0: look"
