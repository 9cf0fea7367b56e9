"""What the offline summary tells of a segment, and what it leaves out."""

import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.structures.actions import compact_action, parse_action
from mesa_pipeline.structures.extractive_summary import ExtractiveSummarizer
from mesa_pipeline.structures.observation_units import shorten, split_units
from mesa_pipeline.structures.summary import SummaryMemory, cited_steps
from mesa_pipeline.types import Step, Trajectory

SUMMARIZER = ExtractiveSummarizer(max_chars=2400, max_chars_per_step=700)


def tell(*pairs: tuple[str, str], task: str = "", preceding: Step | None = None, max_chars: int = 2400) -> list[str]:
    steps = [Step(index, action, observation) for index, (action, observation) in enumerate(pairs, start=10)]
    return ExtractiveSummarizer(max_chars, 700).summarize(task, steps, preceding).split("\n")


def test_only_what_is_new_since_the_step_before_is_told() -> None:
    assert tell(("north", "A cow.\nA tree.\nHealth: 9"), ("do", "A cow.\nA tree.\nHealth: 8")) == [
        "Step 10: north -> A cow. | A tree. | Health: 9",
        "Step 11: do -> Health: 8",
    ]


def test_the_step_before_the_segment_counts_as_known() -> None:
    assert tell(("do", "A cow.\nHealth: 8"), preceding=Step(9, "north", "A cow.\nHealth: 9")) == ["Step 10: do -> Health: 8"]


def test_steps_without_news_share_a_line() -> None:
    assert tell(("a", "Room."), ("b", "Room."), ("b", "Room."), ("c", "Hall.")) == [
        "Step 10: a -> Room.",
        "Steps 11-12: b [no change] x2",
        "Step 13: c -> Hall.",
    ]


def test_a_loop_is_one_line() -> None:
    pairs = [("up", "High."), ("down", "Low.")] * 5 + [("left", "Wall.")]
    assert tell(*pairs)[2:] == [
        "Steps 12-19: up, down repeated, the same 2 observations in turn as before",
        "Step 20: left -> Wall.",
    ]


def test_a_listing_of_options_is_left_out() -> None:
    options = "The available actions are: " + ", ".join(f"go to cabinet {n}" for n in range(12))
    assert tell(("go to sink 1", f"You arrive at sink 1.\n{options}")) == ["Step 10: go to sink 1 -> You arrive at sink 1."]


def test_errors_and_results_come_before_anything_else() -> None:
    log = "\n".join(
        [f"copying module number {n} of many" for n in range(200)] + ["ValueError: bad header", "3 passed, 1 failed"]
    )
    (line,) = tell(("run: tests", log))
    assert "ValueError: bad header" in line
    assert "3 passed, 1 failed" in line
    assert len(line) <= 900


def test_the_action_of_a_tool_call_is_read() -> None:
    (line,) = tell(('bash: {"command": "cat \\"a b.txt\\""}', "hello"))
    assert line == 'Step 10: bash: cat "a b.txt" -> hello'


def test_dialogue_turns_keep_who_said_it_and_when() -> None:
    turns = [
        "[1:56 pm on 8 May, 2023] Ann: Hi!",
        "[1:56 pm on 8 May, 2023] Bo: How nice to see you, it has been such a long time, hasn't it? I moved to Rome in 2019.",
    ]
    lines = tell(*[("say", turn) for turn in turns])
    assert lines[0] == "Every step: say"
    assert lines[-1].startswith("Step 11: [1:56 pm on 8 May, 2023] Bo: ")
    assert lines[-1].endswith("I moved to Rome in 2019.")


def test_element_ids_that_change_with_the_page_load_are_no_news() -> None:
    assert tell(("click", "[12] link 'Issues'\n[13] link 'Help'"), ("open", "[88] link 'Issues'\n[90] link 'Saved'"))[1] == (
        "Step 11: open -> [90] link 'Saved'"
    )


def test_what_the_task_names_is_preferred() -> None:
    filler = "\n".join(f"{word} paragraph about various matters entirely" for word in ("alpha", "beta", "gamma", "delta") * 20)
    (line,) = tell(("open", f"{filler}\nthe dinosaur nominator was FunkMonk\n{filler}"), task="Who nominated the dinosaur?")
    assert "FunkMonk" in line


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.text(max_size=30), st.text(max_size=300)), min_size=1, max_size=25),
    st.sampled_from([200, 600, 2400]),
)
def test_any_segment_fits_its_bound_and_cites_only_its_steps(pairs: list[tuple[str, str]], max_chars: int) -> None:
    steps = tuple(Step(index, action, observation) for index, (action, observation) in enumerate(pairs))
    structure = SummaryMemory(ExtractiveSummarizer(max_chars, 700), window_chars=10**6, max_chars=max_chars)
    (segment,) = structure.build(Trajectory("t", "", steps)).segments
    assert segment.text
    assert len(segment.text) <= max_chars
    assert set(segment.cited) <= {step.index for step in steps}
    text = ExtractiveSummarizer(2400, 700).summarize("", steps, None)
    if len({step.action for step in steps}) > 1:
        assert cited_steps(text, steps) == tuple(step.index for step in steps)


def test_empty_steps_are_told_as_such() -> None:
    assert tell(("", ""), ("", "")) == ["Steps 10-11: (nothing of note) x2"]
    assert tell(("", "")) == ["Step 10: (nothing of note)"]


@pytest.mark.parametrize(
    "text",
    [
        "word " * 225_000,
        "x" * 1_100_000,
        '{"a": ' * 180_000,
        "a.b-c/" * 180_000,
        "line, with, commas\n" * 60_000,
        "'" * 1_100_000,
        "\u0634\u0645 \ud83d\x00" * 200_000,
    ],
    ids=["words", "one word", "nested", "path", "lines", "quotes", "script"],
)
def test_a_huge_step_takes_bounded_time_and_memory(text: str) -> None:
    tracemalloc.start()
    started = time.process_time()
    lines = tell(("read", text))
    seconds = time.process_time() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len("\n".join(lines)) <= 2400
    assert seconds < 30
    assert peak < 300 * 2**20


@pytest.mark.parametrize(
    ("action", "tool", "arguments"),
    [
        ('search({"query": "a (b)"})', "search", {"query": "a (b)"}),
        ('edit: {"path": "x.py", "lines": [1, 2]}', "edit", {"path": "x.py", "lines": "[1, 2]"}),
        ("bash: ls -la", "bash", {"": "ls -la"}),
        ("go to shelf 1", "", {}),
        ("((0,1), (0,2))", "", {}),
        ('broken({"query": ', "broken", {"": '{"query": '}),
        ("", "", {}),
    ],
)
def test_actions(action: str, tool: str, arguments: dict[str, str]) -> None:
    parsed = parse_action(action)
    assert (parsed.tool, parsed.arguments) == (tool, arguments)


def test_compact_actions_fit() -> None:
    assert compact_action('edit: {"path": "x.py", "text": "a\\nb"}', 80) == "edit: path=x.py text=a b"
    assert len(compact_action("long " * 100, 50)) <= 50


@settings(deadline=None)
@given(st.text(max_size=500), st.integers(8, 60))
def test_shortened_text_fits_on_one_line(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit
    assert "\n" not in short


def test_units() -> None:
    long = "The first sentence is here and long enough. The second one follows! " + "x" * 60
    assert [unit.text for unit in split_units(f"- item\n=====\n{long}")][:3] == [
        "item",
        "The first sentence is here and long enough.",
        "The second one follows!",
    ]
    literal = (
        "{'board': [[0, 2], [4, 8]], 'highest_tile': 8, 'analysis': 'Board has 11 empty spaces', 'note': 'a longer text here'}"
    )
    assert [unit.text for unit in split_units(literal)][1] == "'highest_tile': 8,"
