import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline import subsets
from mesa_pipeline.errors import SandboxFailure
from mesa_pipeline.policies.sandbox.replies import Reply, printable, read_choices, read_member


@pytest.mark.parametrize(
    ("value", "mask"),
    [(["S"], 1), (["R", "S"], 17), (["T", "T", "T"], 2), (["S", "T", "G", "V", "R"], 31), (["G", "V", "G", "V", "G"], 12)],
)
def test_a_list_of_structures_is_their_subset(value: list[str], mask: int) -> None:
    assert read_choices([value], 1) == [Reply(mask)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], "select returned 0 items; return 1 to 5 structures"),
        (["S"] * 6, "select returned 6 items; return 1 to 5 structures"),
        (["s"], "select returned 's', which is none of S, T, G, V, R"),
        (["Ｓ"], "select returned '\\\\uff33', which is none of S, T, G, V, R"),
        ([None], "select returned None, which is none of S, T, G, V, R"),
        ([["S"]], "select returned ['S'], which is none of S, T, G, V, R"),
        ([True], "select returned True, which is none of S, T, G, V, R"),
        (["ST"], "select returned 'ST', which is none of S, T, G, V, R"),
        ("ST", "select returned a string; return a list of structures such as ['S', 'T']"),
        (None, "select returned None; return a list of structures such as ['S', 'T']"),
        (True, "select returned a truth value; return a list of structures such as ['S', 'T']"),
        (3, "select returned a number; return a list of structures such as ['S', 'T']"),
        ({"S": 1}, "select returned an object; return a list of structures such as ['S', 'T']"),
        ({"error": "line 1: X"}, "line 1: X"),
    ],
)
def test_anything_else_is_that_questions_error(value: object, expected: str) -> None:
    assert read_choices([["S"], value], 2) == [Reply(1), Reply(error=expected)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


@given(JSON)
def test_no_reply_of_any_kind_is_more_than_a_mask_or_a_reason(value: object) -> None:
    (reply,) = read_choices([value], 1)
    assert (reply.mask in subsets.ALL_SUBSETS) != (reply.error is not None)


@given(st.text(alphabet=st.characters(), max_size=500))
def test_reasons_hold_printable_ascii_alone(text: str) -> None:
    shown = printable(text)
    assert shown.isascii() and len(shown) <= 300
    assert not shown or shown.isprintable()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"state":1,"x":2}', b'{"error":1}', b"null", b'{"replies":[]}'])
def test_a_reply_without_its_one_member_is_a_failure(content: bytes) -> None:
    with pytest.raises(SandboxFailure):
        read_member(content, "fit", "state")
