"""What the reader must do with evidence: quote the right part of it, lose with the wrong part, and not be lost in noise."""

import re

import numpy as np
import pytest

from mesa_pipeline import subsets
from mesa_pipeline.config import Settings
from mesa_pipeline.evaluation.metrics import ama_f1, locomo_f1
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.reading.extractive import ExtractiveReader
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import ComposedEvidence, Evidence, EvidenceItem, Step

PEOPLE = ("Nadia", "Otto", "Priya", "Quentin", "Rosa", "Sven", "Tara", "Umar", "Vera", "Wim")
CITIES = ("Lisbon", "Oslo", "Quito", "Hanoi", "Dakar", "Lima", "Perth", "Riga", "Seoul", "Tunis")
MONTHS = ("January", "March", "April", "May", "June", "July", "August", "October", "November", "December")
# Action, observation, and a question that the observation answers. Every other one is about the same kind of thing.
OFFICE = (
    ("search flights to Zurich", "Flight LX204 to Zurich departs at 09:40 from gate B12 and costs 210 euros.",
     "At which gate does the flight to Zurich depart and what does it cost?"),
    ("search flights to London", "Flight BA77 to London departs at 11:15 from gate C3 and costs 180 euros.",
     "At which gate does the flight to London depart and what does it cost?"),
    ("open calendar entry", "The dentist appointment on Thursday was moved to 14:30 by Doctor Keller.",
     "Who moved the dentist appointment and to what time?"),
    ("open calendar entry", "The budget meeting on Friday was cancelled by Agnes because the auditor is ill.",
     "Why was the budget meeting cancelled and by whom?"),
    ("run login tests", "FAILED test_login: TimeoutError after 30 seconds in auth.py while waiting for the database.",
     "Which error did test_login raise and in which file?"),
    ("run report tests", "FAILED test_report: KeyError 'total' in report.py while reading the quarterly table.",
     "Which error did test_report raise and in which file?"),
    ("read mail from Marta", "Marta asks whether invoice 8841 for the new printer was paid to Huber last week.",
     "What does Marta ask about invoice 8841?"),
    ("read mail from Jonas", "Jonas wants the contract with the Bremen warehouse extended until December.",
     "What does Jonas want done with the contract?"),
)  # fmt: skip


class WordCounter:
    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def records(*steps: Step, code: str = "T") -> ComposedEvidence:
    items = tuple(EvidenceItem(serialize_step(step).text, (step.index,), is_record=True) for step in steps)
    return Composer({code: Evidence(code, items)}, WordCounter()).compose(subsets.encode(code))


def office(number: int) -> Step:
    action, observation, _ = OFFICE[number]
    return Step(number, action, observation)


def turn(number: int) -> Step:
    person, city, month = PEOPLE[number % 10], CITIES[(number * 3) % 10], MONTHS[number % 10]
    return Step(number, "say", f"[1:56 pm on {number + 1} {month}, 2023] {person}: Last week I moved to {city} for a new job.")


@pytest.fixture(scope="module")
def reader(settings: Settings) -> ExtractiveReader:
    return ExtractiveReader(settings.reading.extractive)


def score(reader: ExtractiveReader, number: int, steps: list[int]) -> float:
    _, gold, question = OFFICE[number]
    return ama_f1(reader.answer(question, "", records(*map(office, steps))).text, gold)


def test_the_right_step_scores_and_the_wrong_one_does_not(reader):
    with_it = [score(reader, number, [number]) for number in range(len(OFFICE))]
    without = [score(reader, number, [(number + 2) % len(OFFICE)]) for number in range(len(OFFICE))]
    assert np.mean(with_it) > 0.6
    assert np.mean(without) < 0.2


def test_distractors_lower_the_mean(reader):
    numbers = range(len(OFFICE))
    alone = np.mean([score(reader, number, [number]) for number in numbers])
    crowded = np.mean([score(reader, number, list(numbers)) for number in numbers])
    wrong = np.mean([score(reader, number, [other for other in numbers if other != number]) for number in numbers])
    assert alone > crowded > wrong + 0.2


def test_what_was_said_is_answered_by_a_phrase(reader):
    scores = []
    for number in range(10):
        evidence = records(*(turn(k) for k in (number, (number + 1) % 10)), code="V")
        answer = reader.answer(f"Which city did {PEOPLE[number]} move to?", "", evidence).text
        assert len(answer.split()) <= 8
        scores.append(locomo_f1(answer, CITIES[(number * 3) % 10], "single-hop"))
    assert np.mean(scores) > 0.2


def test_when_is_answered_in_calendar_terms(reader):
    answer = reader.answer("When did Rosa move to Quito?", "", records(turn(4), turn(7), code="V")).text
    assert answer == "the week before 5 June 2023"


def test_a_list_of_actions_is_listed(reader):
    evidence = records(Step(3, "go north", "a hall"), Step(4, "take lamp", "taken"))
    answer = reader.answer("What actions were performed between step 3 and step 4?", "", evidence).text
    assert answer == "Step 3: go north; Step 4: take lamp"


def test_quotes_say_which_step_they_are_from(reader):
    answer = reader.answer("At step 3, what did the error message say?", "", records(Step(3, "run", "error: disk full"))).text
    assert answer.startswith("Step 3: ")
    assert "disk full" in answer


def test_only_words_of_the_evidence_are_quoted(reader):
    question = "At step 5, why did the zebra flight with the purple ribbon go to Zurich instead of Mars?"
    evidence = records(*map(office, range(8)))
    answer = reader.answer(question, "", evidence).text
    assert answer
    assert set(re.findall(r"\w+", answer.lower())) <= set(re.findall(r"\w+", evidence.text.lower()))


def test_answers_are_bounded(settings):
    short = ExtractiveReader(settings.reading.extractive.model_copy(update={"max_words": 15}))
    answer = short.answer(
        "Explain in detail what happened to flights and meetings and why", "", records(*map(office, range(8)))
    ).text
    assert 0 < len(answer.replace(";", " ").split()) <= 20


def test_the_answer_is_the_same_in_any_order_of_calls(settings):
    pairs = [(OFFICE[k][2], records(office(k), office((k + 1) % 8))) for k in range(8)]
    forward, backward = ExtractiveReader(settings.reading.extractive), ExtractiveReader(settings.reading.extractive)
    first = [forward.answer(question, "", composed) for question, composed in pairs]
    assert first == [backward.answer(question, "", composed) for question, composed in reversed(pairs)][::-1]


def test_the_identity_holds_settings_and_weights(settings, reader):
    changed = ExtractiveReader(settings.reading.extractive.model_copy(update={"max_words": 15}))
    assert reader.identity() != changed.identity()
    assert reader.identity() == ExtractiveReader(settings.reading.extractive).identity()
    assert reader.identity()["weights"]
