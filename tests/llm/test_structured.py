import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.llm.structured import read_list, without_reasoning

KEYS = ("triples",)


@pytest.mark.parametrize(
    ("text", "items", "complete"),
    [
        ('{"triples": [["a", "b", "c"]]}', (["a", "b", "c"],), True),
        ('Here they are:\n```json\n{"triples": [["a", "b", "c"]]}\n```\nDone.', (["a", "b", "c"],), True),
        ('```json\n["door", "key"]\n```', ("door", "key"), True),
        ('{"entities": ["door"]}', ("door",), True),
        ('{"a": [1], "b": [2]}', (), False),
        ('{"note": [1], "triples": [2]}', (2,), True),
        ("```json\n[]\n```", (), True),
        ('{"triples": []}', (), True),
        ("", (), False),
        ("no list at all", (), False),
        ('{"triples":[["a","b","c"],["d","e"', (["a", "b", "c"],), False),
        ('{"triples":[["a","b","c"],["d, e', (["a", "b", "c"],), False),
        ('["one", "two", "thr', ("one", "two"), False),
        ('{"named_entities": ["key", ...]}', ("key",), False),
        ('{"triples": [["board {2, 4}", "is", "[[0]]"]]}', (["board {2, 4}", "is", "[[0]]"],), True),
        ('<think>["no"]</think>["yes"]', ("yes",), True),
        ('["no"]</think>["yes"]', ("yes",), True),
        ('<think>["no"', (), False),
        ("[true, null, 1.5]", (True, None, 1.5), True),
        ('["\\ud83d"]', ("\ud83d",), True),
    ],
)
def test_lists_are_read_as_models_write_them(text, items, complete):
    reply = read_list(text, KEYS)
    assert (reply.items, reply.complete) == (items, complete)


@pytest.mark.parametrize("text", ["[" * 500_000, "{" * 500_000, '{"triples": [' * 100_000, '[{"a":' * 100_000, "[1," * 200_000])
def test_hostile_replies_take_no_time(text):
    started = time.perf_counter()
    read_list(text, KEYS)
    assert time.perf_counter() - started < 20


@given(st.text(alphabet='[]{}",:abc \\\n1', max_size=60))
def test_any_text_gives_a_reply(text):
    assert isinstance(read_list(text, KEYS).items, tuple)


@given(st.lists(st.lists(st.text(), min_size=3, max_size=3), min_size=1), st.data())
def test_a_cut_reply_keeps_every_whole_item(triples, data):
    import json

    text = json.dumps({"triples": triples})
    whole_until = [len(json.dumps({"triples": triples[: k + 1]})) - 2 for k in range(len(triples))]
    cut = data.draw(st.integers(len('{"triples": ['), len(text) - 2))
    expected = [triple for triple, end in zip(triples, whole_until, strict=True) if end <= cut]
    assert list(read_list(text[:cut], KEYS).items) == expected


def test_reasoning_is_left_out():
    assert without_reasoning("<think>hm</think>yes") == "yes"
    assert without_reasoning("yes<think>hm") == "yes"
    assert without_reasoning("plain") == "plain"


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "\n"]), max_size=12).map("".join))
def test_reasoning_is_what_stands_between_the_marks(text):
    by_pattern = text
    if "</think>" in text and "<think>" not in text:
        by_pattern = text.rpartition("</think>")[2]
    by_pattern = re.sub(r"<think>.*?(?:</think>|\Z)", "", by_pattern, flags=re.DOTALL)
    assert without_reasoning(text) == by_pattern


def test_marks_in_a_loop_take_no_time():
    started = time.perf_counter()
    assert without_reasoning("<think>" * 50_000) == ""
    assert time.perf_counter() - started < 5
