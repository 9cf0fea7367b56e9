"""The grammar of step references, vector by vector, and what it must not do on hostile text."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.structures.step_references import parse_references

LAST = 30


def span(first: int, last: int) -> list[int]:
    return list(range(first, last + 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("step 5", [5]),
        ("turns 3-7", span(3, 7)),
        ("steps 1, 4 and 9", [1, 4, 9]),
        ("until step 12", span(0, 12)),
        ("before step 3", [0, 1, 2]),
        ("the last 3 steps", [28, 29, 30]),
        ("step #5", [5]),
        ("Turn 0", [0]),
        ("Steps 18–20 and 24–26", [18, 19, 20, 24, 25, 26]),
        ("step 9 to step 10", [9, 10]),
        ("Step 10, Step 12, Step 17, and Step 19", [10, 12, 17, 19]),
        ("steps 13/16/21/26", [13, 16, 21, 26]),
        ("Steps 8 & 10", [8, 10]),
        ("step-11", [11]),
        ("step (7)", [7]),
        ("Step 9 vs. Step 23", [9, 23]),
        ("between turn 3 and turn 7", span(3, 7)),
        ("steps 26–40", span(26, 30)),
        ("turns (20-29)", span(20, 29)),
    ],
)
def test_vectors_of_the_specification(text: str, expected: list[int]) -> None:
    assert list(parse_references(text, LAST).indices) == expected


@pytest.mark.parametrize(
    "text",
    [
        "1 step to the right",
        "2 steps down",
        "a 5-step plan",
        "a 5-step 3",
        "multi-step 4",
        "mark_step 4",
        "PR #6461",
        "the link [29575]",
        "step 29575",
        "step 3.5",
        "step 12%",
        "2–4 steps",
        "it took 5 steps (3 left, 2 right)",
        "actions 2–3",
        "repeats the action 3 times",
        "the action ((5,3),(6,3))",
        "a foundational first step",
        "what was the last step where it failed?",
        "the last turn index where it changed",
        "At what step do 'Page 2' and 'Page 3' show up?",
        "turn 31",
        "",
    ],
)
def test_false_friends_name_nothing(text: str) -> None:
    assert parse_references(text, LAST).indices == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("step (turn_idx) 2", [2]),
        ("at step 6 (turn_idx=6)", [6]),
        ("Step IDs (from 20 to 30)", span(20, 30)),
        ("turn index 4", [4]),
        ("step no. 4", [4]),
        ("step12", [12]),
        ("time-step 4", [4]),
        ("Indices 14-19", span(14, 19)),
        ("Observation 9 and later", [9]),
        ("Action 12", [12]),
        ("12 of the steps 12, 14, 15, 17, 19–25", [12, 14, 15, 17, *span(19, 25)]),
        ("steps 4, 5, 6 failed", [4, 5, 6]),
        ("step 5, 7, and 9", [5, 7, 9]),
        ("at step 5, 3 apples fell", [5]),
        ("in steps 5 and 9, 3 apples fell", [5, 9]),
        ("steps 8 → 10 → 11", [8, 10, 11]),
        ("steps 8 → 10", [8, 9, 10]),
        ("steps 3..6", span(3, 6)),
        ("steps 9-7", span(7, 9)),
        ("steps 7 through 9", span(7, 9)),
        ("from the start of step 7 to the end of step 9", span(7, 9)),
        ("from step 27 to the end of the trajectory", span(27, 30)),
        ("between both Step 12 and Step 13", [12, 13]),
        ("at step 3 and again at step 9", [3, 9]),
        ("over 20 turns (20-43)", span(20, 30)),
        ("for the next four steps (8-11)", span(8, 11)),
        ("up to step 4", span(0, 4)),
        ("by the end of step 4", span(0, 4)),
        ("prior to step 2", [0, 1]),
        ("after step 28", [28, 29, 30]),
        ("since turn 29", [29, 30]),
        ("from step 28 onwards", [28, 29, 30]),
        ("right after step 3", [3, 4]),
        ("immediately before step 3", [2]),
        ("before and after step 12", [11, 12, 13]),
        ("justified by the step-7 output", [7]),
        ("triggered by step 5", [5]),
        ("before step 13’s query", [13]),
        ("before the step 6 query", [6]),
        ("at the first step", [0]),
        ("on the final turn", [30]),
        ("the first ten turns", span(0, 9)),
        ("the last 99 steps", span(0, 30)),
        ("the 5th step", [4]),
        ("until step 149", span(0, 30)),
    ],
)
def test_further_forms(text: str, expected: list[int]) -> None:
    assert list(parse_references(text, LAST).indices) == expected


def test_provenance_tells_kind_and_place() -> None:
    text = "Compare step 5, steps 8-10 and 12, until turn 3; the last 2 turns."
    found = parse_references(text, LAST).found
    assert [(reference.kind, text[reference.start : reference.end].strip(" ,")) for reference in found] == [
        ("list", "step 5"),
        ("range", "steps 8-10"),
        ("list", "and 12"),
        ("prefix", "until turn 3"),
        ("suffix", "last 2 turns"),
    ]


def test_exact_steps_are_those_named_one_by_one() -> None:
    references = parse_references("steps 4 and 9, step 4, turns 12-14, until step 2", LAST)
    assert references.exact == (4, 9)
    assert references.indices == (0, 1, 2, 4, 9, 12, 13, 14)


def test_a_reference_beyond_the_end_is_found_but_names_no_step() -> None:
    references = parse_references("turn 31", LAST)
    assert len(references.found) == 1
    assert references.indices == references.exact == ()


def test_an_empty_trajectory_has_no_steps_to_name() -> None:
    assert parse_references("until step 4, the last 3 steps, step 0, from step 1 to the end", -1).indices == ()


def test_long_trajectories_have_long_step_numbers() -> None:
    assert parse_references("steps 1,250 and 12,500", 99_999).indices == (1250, 12500)
    assert parse_references("step 54321", 99_999).indices == (54321,)
    assert parse_references("steps 4,115", 200).indices == (4, 115)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("At turn 6, what is the status of step 0?", (6,)),
        ("Analyze the 'Step 3' calculation in Turn 16", (16,)),
        ("The agent reaches Turn 30; trace it to step 7", (7, 30)),
        ("the transition from Step 0 to Step 1", (0, 1)),
    ],
)
def test_steps_of_an_agents_plan_give_way_to_turns(text: str, expected: tuple[int, ...]) -> None:
    assert parse_references(text, LAST).indices == expected


def test_invisible_and_odd_characters_do_not_hide_a_reference() -> None:
    assert parse_references("\ud800 step\u200b 5 \x00 \u202esteps \u2067 6 and 7", LAST).indices == (5, 6, 7)


@given(st.text(), st.integers(-1, 200))
def test_any_text_gives_steps_of_the_trajectory(text: str, last_index: int) -> None:
    references = parse_references(text, last_index)
    assert list(references.indices) == sorted(set(references.indices))
    assert all(0 <= index <= last_index for index in references.indices)
    assert set(references.exact) <= set(references.indices)


PIECES = ["step", "steps", "turn", " ", "-", "(", "until", "before", "to", "and", ",", "3", "12", "the", "last", "→", "st"]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.integers(-1, 20))
def test_any_mixture_of_the_grammars_words_gives_steps_of_the_trajectory(pieces: list[str], last_index: int) -> None:
    references = parse_references(" ".join(pieces), last_index)
    assert all(0 <= index <= last_index for index in references.indices)
    assert all(left.end <= right.start for left, right in zip(references.found, references.found[1:], strict=False))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit", ["until step 9 ", "step 1,", "step ", "steps 1 and 2,", "first ", "step (((", "→", "1", "the ", "1,000"]
)
def test_a_million_characters_are_read_in_linear_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert all(index <= 100_000 for index in parse_references(text, 100_000).indices)


def test_every_numbered_step_of_the_development_questions_is_found(dev_data: Path) -> None:
    numbered = re.compile(r"\b(?:steps?|turns?)\W{0,3}\d", re.IGNORECASE)
    missed = []
    with (dev_data / "ama_bench" / "open_end_qa_set.jsonl").open(encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            last_index = row["trajectory"][-1]["turn_idx"]
            texts = [pair["question"] for pair in row["qa_pairs"]]
            missed += [text for text in texts if numbered.search(text) and not parse_references(text, last_index).indices]
    assert missed == []
