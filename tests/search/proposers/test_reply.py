import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.search.proposers.reply import source_in

CODE = 'META = {"direction": "free"}\n\n\ndef select(state, q):\n    return ["S"]\n'
OTHER = "select({}, {})\n"
SKETCH = "def select(state, q):\n    return nothing\n"


def block(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}```"


WRAPPED = {
    "one block": f"Here it is.\n\n{block(CODE)}\n\nIt reads little.",
    "no language": block(CODE, ""),
    "another spelling": block(CODE, "Py"),
    "tildes": f"~~~python\n{CODE}~~~",
    "a longer fence": f"````python\n{CODE}````",
    "never closed": f"```python\n{CODE}",
    "no fence": CODE,
    "no fence, within prose": f"Here is the policy:\n\n{CODE}\nIt reads little.",
    "a sketch before": f"{block(SKETCH)}\nBetter:\n{block(CODE)}",
    "a test after": f"{block(CODE)}\nTry it:\n{block(OTHER)}",
    "fenced twice": f"```\n{block(CODE)}\n```",
    "fenced thrice": f"````\n```\n{block(CODE)}\n```\n````",
    "indented in a list": "1. So:\n" + "".join(f"   {line}\n" for line in block(CODE).split("\n")),
    "windows line ends": block(CODE).replace("\n", "\r\n"),
    "after thinking": f"<think>First {block(SKETCH)} ...</think>\n{block(CODE)}",
    "json": json.dumps({"hypothesis": "it reads little", "code": CODE}),
    "json in a fence": block(json.dumps({"policy": {"source": CODE}}) + "\n", "json"),
    "a fence in json": json.dumps({"source": block(CODE)}),
    "a json string": json.dumps(CODE),
}


@pytest.mark.parametrize("reply", WRAPPED.values(), ids=WRAPPED)
def test_the_source_is_found_in(reply):
    assert source_in(reply, 10_000).strip() == CODE.strip()


@pytest.mark.parametrize(
    "reply", ["", "   \n", "I would read little.", "{", "[" * 100_000, '{"code": null}', "```", "```python\n```", "<think>"]
)
def test_no_source_is_found_in(reply):
    assert source_in(reply, 200_000) == ""


def test_a_block_of_python_without_select_is_taken_where_there_is_no_better_one():
    reply = block("x = 1\n", "text") + "\n" + block("META = 2\n")
    assert source_in(reply, 1000) == "META = 2\n"


def test_what_is_beyond_the_limit_is_not_read():
    reply = f"{block(CODE)}\n{block(SKETCH)}"
    assert source_in(reply, len(block(CODE)) + 1).strip() == CODE.strip()
    assert source_in("x" * 1_000_000, 1000) == ""


def test_thinking_does_not_count_towards_the_limit():
    assert source_in("<think>" + "hm " * 10_000 + "</think>" + block(CODE), 500).strip() == CODE.strip()


def test_halves_of_surrogate_pairs_become_question_marks():
    assert source_in(block(CODE.replace('"S"', '"\ud800S"')), 1000).strip() == CODE.replace('"S"', '"?S"').strip()


@settings(deadline=None)
@given(st.text(st.one_of(st.sampled_from('`~{}[]"\n\\ '), st.characters(exclude_categories=()))), st.booleans())
def test_any_text_gives_a_source_that_can_be_stored(text, with_code):
    source = source_in(text + (CODE if with_code else ""), 1000)
    source.encode("utf-8")
