"""Each tokenizer on text with the shapes that logs have."""

import pytest

from mesa_pipeline.errors import ConfigError
from mesa_pipeline.stores.tokenizers import TOKENIZERS, open_tokenizer

TEXT = "The agent ran SELECT fact_Census2 FROM stepNotes; exit-code: 127."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("whitespace", ["the", "agent", "ran", "select", "fact_census2", "from", "stepnotes;", "exit-code:", "127."]),
        ("words", ["the", "agent", "ran", "select", "fact_census2", "from", "stepnotes", "exit", "code", "127"]),
        ("words-stop", ["agent", "ran", "select", "fact_census2", "from", "stepnotes", "exit", "code", "127"]),
        ("words-stem", ["the", "agent", "ran", "select", "fact_census2", "from", "stepnot", "exit", "code", "127"]),
    ],
)
def test_terms_of_a_log_line(name: str, expected: list[str]) -> None:
    assert open_tokenizer(name)(TEXT) == expected


def test_identifiers_give_themselves_and_their_parts() -> None:
    terms = open_tokenizer("identifiers")("fact_Census2 parseHTTPReply /src/Main.py")
    assert terms == [
        *("fact_census2", "fact", "census", "2"),
        *("parsehttpreply", "parse", "http", "reply"),
        *("src", "main", "py"),
    ]


def test_stemming_joins_the_forms_of_a_word() -> None:
    stem = open_tokenizer("identifiers-stop-stem")
    assert stem("camping") == stem("the camps") == ["camp"]


def test_other_scripts_give_terms() -> None:
    for name in TOKENIZERS:
        assert open_tokenizer(name)("שלום Привет") == ["שלום", "привет"]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_hostile_text_gives_terms_in_linear_time(name: str) -> None:
    for text in ("", "\x00\ud800\u202e", "a" * 1_100_000, "aB1_" * 275_000):
        assert isinstance(open_tokenizer(name)(text), list)


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="identifiers-stop-stem"):
        open_tokenizer("nonsense")
