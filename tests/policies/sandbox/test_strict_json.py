import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.policies.sandbox.strict_json import MAX_DEPTH, dump, parse

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(VALUES)
def test_every_json_value_comes_back_as_it_was(value: object) -> None:
    assert parse(dump(value)) == value


@pytest.mark.parametrize(
    "content",
    [
        *(b"NaN", b"[Infinity]", b"-Infinity", b"1e999", b"[-1e999]", b'{"a":1,"a":1}', b"", b"{}{}", b"[1,]", b"'a'"),
        *(
            b"\xff",
            b"\x80\x04K\x01.",
            b"9" * 5_000,
            b"[" * 100_000,
            b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
            b"\xef\xbb\xbf1",
        ),
    ],
)
def test_what_lenient_parsers_let_pass_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):
        parse(content)


def test_the_depth_cap_is_exact() -> None:
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)


def test_lone_surrogates_survive() -> None:
    assert parse(b'"\\ud800"') == "\ud800"
    assert dump("\ud800") == b'"\\ud800"'


def test_what_is_not_json_is_not_written() -> None:
    with pytest.raises(ValueError):
        dump(math.nan)
