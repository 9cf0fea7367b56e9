import json
import logging
from pathlib import Path

import pytest

from mesa_pipeline.datasets.rows import (
    Fields,
    Row,
    absent_to_empty,
    check_increasing,
    collect_episodes,
    describe,
    parse_row,
    read_bytes,
    read_lines,
    to_text,
)
from mesa_pipeline.errors import DataError
from mesa_pipeline.types import Episode, Step, Trajectory


def make_fields(**values: object) -> Fields:
    return Fields(values, "log.jsonl, line 3", "trajectory[4].")


def read_id(row: Row) -> Episode:
    name = row.fields().identifier("id")
    return Episode(name, "test", "d", "t", Trajectory(name, "", ()))


@pytest.mark.parametrize("mark", [None, "", "—", " — ", "\n"])
def test_three_ways_to_say_absent(mark: str | None) -> None:
    assert absent_to_empty(mark) == ""


def test_an_em_dash_inside_text_is_text() -> None:
    assert absent_to_empty("— yes") == "— yes"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("look", "look"),
        (["look", "go"], "look\ngo"),
        ([], ""),
        ([{"a": "é"}], '[{"a": "é"}]'),
        ({"tool": "x"}, '{"tool": "x"}'),
        (5, "5"),
        (True, "true"),
    ],
)
def test_any_value_becomes_text(value: object, text: str) -> None:
    assert to_text(value) == text


def test_an_error_names_file_row_field_finding_and_remedy() -> None:
    error = make_fields(turn_idx="three").error("turn_idx", "a whole number", "number the turns")
    assert str(error) == (
        "log.jsonl, line 3, field trajectory[4].turn_idx: expected a whole number, found the text 'three'; number the turns"
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"),
        ([1, 2], "a list of 2"),
        ({}, "an empty object"),
        ({"b": 1, "a": 2}, "an object with the keys 'a, b'"),
        (True, "the boolean True"),
        (1.5, "the number 1.5"),
    ],
)
def test_found_values_are_described(value: object, words: str) -> None:
    assert describe(value) == words


def test_a_description_is_short_and_printable_whatever_was_found() -> None:
    words = describe("\ud800\u202e\x00" + "x" * 1_000_000)
    assert len(words) < 120
    assert words.isprintable()
    words.encode("utf-8")


@pytest.mark.parametrize("value", [True, -1, 1.0, "1", None, [1]])
def test_only_a_whole_number_is_a_whole_number(value: object) -> None:
    with pytest.raises(DataError, match="whole number"):
        make_fields(n=value).whole_number("n", "fix it")


@pytest.mark.parametrize("value", [None, "", "  ", True, 1.5, [], {}])
def test_what_is_no_identifier_is_refused(value: object) -> None:
    with pytest.raises(DataError, match="id"):
        make_fields(id=value).identifier("id")


def test_identifiers_are_text() -> None:
    assert make_fields(id=0).identifier("id") == "0"
    assert make_fields(id="../../x").identifier("id") == "../../x"


@pytest.mark.parametrize("value", [None, "", "—", True, {}, [], [1]])
def test_what_is_no_reference_answer_is_refused(value: object) -> None:
    with pytest.raises(DataError, match="reference answer"):
        make_fields(answer=value).reference("answer", "fix it")


def test_references_may_be_numbers_or_lists() -> None:
    assert make_fields(answer=2022).reference("answer", "") == "2022"
    assert make_fields(answer=["A", "C"]).reference("answer", "") == "A, C"


def test_elements_of_a_list_know_where_they_stand() -> None:
    fields = Fields({"turns": [{}, {"x": 1}]}, "f")
    with pytest.raises(DataError, match=r"field turns\[1\]\.x: expected a text"):
        fields.objects("turns", "")[1].text("x", "")
    with pytest.raises(DataError, match=r"field turns\[0\]: expected an object, found the number 7"):
        Fields({"turns": [7]}, "f").objects("turns", "")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"a": ', "not valid JSON at column"),
        (b'{"a": "\x00"}', "not valid JSON"),
        (b"\xff\xfe{", "byte 0 is not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b"1" * 10_000, "too long"),
        (b"<html>", "not valid JSON"),
    ],
)
def test_unreadable_rows_carry_their_problem(content: bytes, problem: str) -> None:
    row = parse_row("f, line 1", content)
    with pytest.raises(DataError, match=f"f, line 1: .*{problem}"):
        row.checked_value()


def test_escaped_nul_and_lone_surrogates_survive() -> None:
    assert parse_row("f", rb'{"a": "\u0000\ud83d"}').fields().values["a"] == "\x00\ud83d"


def test_lines_are_split_at_line_feeds_alone(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": "x\xe2\x80\xa8y"}\r\n\n   \n{"a": "z"}')
    rows = list(read_lines(path))
    assert [row.fields().values["a"] for row in rows] == ["x\u2028y", "z"]
    assert [row.where.rpartition(" ")[2] for row in rows] == ["1", "4"]


@pytest.mark.parametrize("content", [b"", b" \n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    with pytest.raises(DataError, match="is empty"):
        read_bytes(path)


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*none.*--data"):
        read_bytes(tmp_path / "none")
    with pytest.raises(DataError, match=r"cannot read .*--data"):
        read_bytes(tmp_path)


def test_one_bad_row_stops_the_load_or_is_listed() -> None:
    rows = [Row("r1", {"id": 1}), Row("r2", [1]), Row("r3", {"id": "1"}), Row("r4", problem="r4: broken"), Row("r5", {"id": 2})]
    with pytest.raises(DataError, match=r"r2: expected a JSON object, found a list of 1.*--skip-invalid"):
        collect_episodes(Path("f"), rows, read_id, skip_invalid=False)
    loaded = collect_episodes(Path("f"), rows, read_id, skip_invalid=True)
    assert [episode.id for episode in loaded.episodes] == ["1", "2"]
    assert [line.split(":")[0] for line in loaded.skipped] == ["r2", "r3", "r4"]
    assert "was already used at r1" in loaded.skipped[1]


def test_what_is_left_out_is_told_with_its_number(caplog: pytest.LogCaptureFixture) -> None:
    rows = [Row("r0", {"id": 0}), *(Row(f"r{number}", problem=f"r{number}: broken") for number in range(1, 30))]
    with caplog.at_level(logging.WARNING):
        collect_episodes(Path("f"), rows, read_id, skip_invalid=True)
    [told] = caplog.messages
    assert told.startswith("f: 29 bad rows left out:\n  r1: broken\n")
    assert told.endswith("r10: broken\n  ...")
    caplog.clear()
    collect_episodes(Path("f"), rows[:1], read_id, skip_invalid=True)
    assert caplog.messages == []


def test_skipping_everything_is_still_an_error() -> None:
    with pytest.raises(DataError, match=r"no episode in f; the first of 1 bad rows: r1"):
        collect_episodes(Path("f"), [Row("r1", 5)], read_id, skip_invalid=True)


@pytest.mark.parametrize(("indices", "message"), [([0, 2, 1], "1 comes after 2"), ([0, 0], "0 comes after 0")])
def test_step_numbers_must_rise(indices: list[int], message: str) -> None:
    steps = [Step(index, "a", "") for index in indices]
    with pytest.raises(DataError, match=rf"f, field turn\[{len(indices) - 1}\]: {message}"):
        check_increasing(steps, "f", "turn[{position}]")


def test_gaps_between_step_numbers_are_kept() -> None:
    steps = (Step(3, "", ""), Step(7, "", ""))
    assert check_increasing(steps, "f", "") == steps


def test_rows_round_trip_through_json() -> None:
    value = {"id": "é", "n": [1, None, {"x": "\x00"}]}
    assert parse_row("f", json.dumps(value).encode()).checked_value() == value
