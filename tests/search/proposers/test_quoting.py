import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.search.proposers.quoting import cleaned, fenced, record
from tests.search.proposers.requests import outside_fences

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def test_ordinary_text_comes_back_as_it_was():
    text = 'if re.search(r"(?P<s>\\d+) (<|>) <b>", q["question"]):\n\treturn ["S"]  # naïve, 中文 <= 3'
    assert cleaned(text, 1000) == text


@pytest.mark.parametrize(
    "token",
    [
        *("<|im_start|>", "<|eot_id|>", "<|turn>", "<turn|>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<start_of_turn>"),
        *("</s>", "<s>", "<EOS>", "</think>", "[INST]", "[/INST]"),
    ],
)
def test_control_tokens_are_broken(token):
    shown = cleaned(f"a{token}b", 100)
    assert token not in shown
    assert shown.replace(" ", "") == f"a{token}b"


@pytest.mark.parametrize("char", ["\0", "\x1b", "\r", "\u202e", "\u200b", "\u2028", "\ud800", "\ue000", "\U000e0041"])
def test_characters_that_steer_are_replaced(char):
    assert cleaned(f"a{char}b", 10) == "a\ufffdb"


def test_what_is_too_long_is_cut_with_a_mark():
    assert cleaned("abcdef", 4) == "abcd [...]"
    assert cleaned("abcd", 4) == "abcd"


@settings(deadline=None)
@given(ANY_TEXT)
def test_cleaned_text_can_be_sent_and_stays_clean(text):
    shown = cleaned(text, 50)
    shown.encode("utf-8")
    assert cleaned(shown, 100) == shown


@settings(deadline=None)
@given(st.lists(ANY_TEXT, min_size=1))
def test_nothing_ends_a_fence_from_inside(lines):
    block = fenced("text", [cleaned(line, 100) for line in lines])
    assert outside_fences(f"before\n{block}after") == "before\n(data)\nafter"


def test_a_fence_is_longer_than_any_run_of_backticks_in_it():
    assert fenced("python", ["a", "````", "b"]) == "`````python\na\n````\nb\n`````\n"


@settings(deadline=None)
@given(ANY_TEXT)
def test_a_record_is_one_line_of_json_whatever_is_in_it(text):
    line = record(20, hypothesis=text, nested={"names": [text], text: 1})
    assert "\n" not in line
    value = json.loads(line)
    assert value["hypothesis"] == value["nested"]["names"][0] == cleaned(text, 20)
