import time

import pytest

from mesa_pipeline.reading.passages import read_passages, split_section, words
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step


def units(text: str) -> list[tuple[tuple[int, ...], str, str]]:
    found = [passage for piece in split_section(text) for passage in read_passages(piece)]
    return [(unit.source.steps, unit.field, unit.text) for passage in found for unit in passage.units]


def test_a_record_falls_into_action_and_observation_lines():
    text = "## Steps by time\n\n" + serialize_step(Step(7, "open door", "It creaks.\nA lamp is lit.")).text
    assert units(text) == [
        ((7,), "action", "open door"),
        ((7,), "observation", "It creaks."),
        ((7,), "observation", "A lamp is lit."),
    ]


def test_lines_that_only_look_like_headers_do_not_begin_a_record():
    inside = "Step 3 of the plan is done\nStep 9\nno record follows"
    assert {steps for steps, _, _ in units(serialize_step(Step(7, "read", inside)).text)} == {(7,)}


def test_summary_lines_tell_action_and_news_of_cited_steps():
    text = "Step 4: open box -> a key | a coin\nSteps 5-7: look; wait x2"
    assert units(text) == [
        ((4,), "action", "open box"),
        ((4,), "observation", "a key | a coin"),
        ((5, 6, 7), "action", "look; wait x2"),
    ]


def test_relations_carry_the_steps_and_time_they_end_with():
    (passage,) = read_passages("  Ann --moved to--> Oslo (steps 3, 9; 1:56 pm on 8 May, 2023)")
    assert passage.source.steps == (3, 9)
    assert passage.source.time == "1:56 pm on 8 May, 2023"
    assert passage.units[0].text == "Ann moved to Oslo"


def test_numbered_actions_are_read_under_their_heading_only():
    listed = "Actions of the steps named:\n3: go north\n4: take key"
    assert units(listed) == [((3,), "action", "go north"), ((4,), "action", "take key")]
    assert units("3: go north") == [((), "statement", "3: go north")]


def test_a_dialogue_turn_knows_time_and_speaker():
    record = serialize_step(Step(2, "say", "[1:56 pm on 8 May, 2023] Ann: I went out yesterday. It rained.")).text
    (passage,) = read_passages(record)
    said = passage.units[-1]
    assert (said.source.speaker, said.source.time) == ("Ann", "1:56 pm on 8 May, 2023")
    assert said.text == "I went out yesterday. It rained."


def test_references_to_other_sections_and_headings_are_no_evidence():
    assert units("## Steps by time\n\nAlso relevant, shown above: step 3, step 4\n") == []


def test_escaped_arguments_are_read_as_their_text():
    assert [text for _, _, text in units('run: {"code": "a = 1\\nprint(\\"a\\")"}')] == ['run: {"code": "a = 1', 'print("a")"}']


def test_long_lines_fall_into_sentences_and_bounded_pieces():
    sentences = "The first sentence is here. " * 8
    assert units(sentences)[0][2] == "The first sentence is here."
    assert max(len(text) for _, _, text in units("x" * 5000)) <= 280


def test_words_leave_articles_out_and_keep_their_number_under_odd_case_folding():
    assert words("The İstanbul trip, A-1") == ("i̇stanbul", "trip", "1")


@pytest.mark.parametrize("piece", ["\\", "{", '"a": ', "Step 1\n", "(step 1, ", " ", "[x] Ann: ", ". ", "\x00", "\ud83d"])
def test_reading_is_linear_in_the_text(piece):
    started = time.process_time()
    for part in split_section("Step 1\nAction: " + piece * (300_000 // len(piece)) + "\nStep 2: x"):
        read_passages(part)
    assert time.process_time() - started < 10
