"""The log of a search: what is appended is kept, and what was changed is noticed."""

import json
import resource
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.search.events import EventLog
from tests.search.searches import REPOSITORY

HOSTILE = {"text": "\x00\ud800\u202e{}\n\r\x1b", "deep": [[[{"": None}]]], "large": 10**40, "small": -0.0}


@pytest.fixture
def path(tmp_path):
    log = EventLog(tmp_path / "search" / "events.jsonl")
    for k in range(4):
        log.append("counted", {"k": k})
    return tmp_path / "search" / "events.jsonl"


def test_a_log_that_is_not_there_is_empty_and_makes_no_file(tmp_path):
    assert list(EventLog(tmp_path / "x" / "events.jsonl")) == []
    assert list(tmp_path.iterdir()) == []


def test_events_are_read_back_as_they_were_appended(tmp_path):
    log = EventLog(tmp_path / "events.jsonl")
    log.append("odd", HOSTILE)
    log.append("plain", {})
    again = EventLog(tmp_path / "events.jsonl")
    assert list(again) == list(log)
    assert [event["event"] for event in again] == ["odd", "plain"]
    assert {name: again_value for name, again_value in next(iter(again)).items() if name in HOSTILE} == HOSTILE


def test_a_log_is_continued_to_the_same_bytes(path, tmp_path):
    continued = EventLog(path)
    continued.append("last", {"k": 4})
    whole = EventLog(tmp_path / "whole.jsonl")
    for k in range(4):
        whole.append("counted", {"k": k})
    whole.append("last", {"k": 4})
    assert path.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("kept", range(1, 60, 7))
def test_a_torn_last_line_is_no_event_and_the_next_takes_its_place(path, kept):
    content = path.read_bytes()
    start = content.rstrip(b"\n").rindex(b"\n") + 1
    path.write_bytes(content[: start + kept])
    log = EventLog(path)
    assert len(log) == 3
    assert path.read_bytes() == content[: start + kept], "reading changes nothing"
    log.append("counted", {"k": 3})
    assert path.read_bytes() == content


def test_a_torn_only_line_is_an_empty_log(path):
    path.write_bytes(path.read_bytes()[:10])
    log = EventLog(path)
    log.append("counted", {"k": 0})
    assert [event["k"] for event in EventLog(path)] == [0]


def changed(lines):
    return [lines[0], lines[1].replace(b'"k":1', b'"k":7'), *lines[2:]]


def changed_last(lines):
    return [*lines[:-1], lines[-1].replace(b'"k":3', b'"k":7')]


def resealed(lines):
    event = json.loads(lines[1])
    return [lines[0], json.dumps({**event, "k": 7, "seal": "0" * 20}).encode() + b"\n", *lines[2:]]


@pytest.mark.parametrize(
    ("damage", "number"),
    [
        (changed, 1),
        (changed_last, 3),
        (resealed, 1),
        (lambda lines: [lines[0], *lines[2:]], 1),
        (lambda lines: lines[1:], 0),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], 2),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], 1),
        (lambda lines: [lines[0], b"\n", *lines[1:]], 1),
        (lambda lines: [lines[0], b"null\n", *lines[1:]], 1),
        (lambda lines: [lines[0], b"\xff{\n", *lines[1:]], 1),
        (lambda lines: [b'{"event":"counted"}\n'], 0),
    ],
)
def test_what_was_changed_lost_or_put_in_is_noticed_with_its_place(path, damage, number):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(damage(lines)))
    with pytest.raises(ArtifactError, match=rf"event {number} was changed.*delete the folder"):
        EventLog(path)


@given(st.data())
def test_any_changed_byte_but_for_the_tail_is_noticed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    log = EventLog(path)
    for k in range(3):
        log.append("counted", {"k": k})
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 2))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(ArtifactError):
        EventLog(path)


def test_a_full_disk_is_said_and_the_log_can_be_continued(path):
    """The file may grow by 40 bytes, less than an event: the disk is full in the middle of a line."""
    content = path.read_bytes()
    script = f"""
import resource
from pathlib import Path
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.search.events import EventLog
log = EventLog(Path({str(path)!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, ({len(content) + 40}, {resource.RLIM_INFINITY}))
try:
    log.append("counted", {{"k": 4}})
except ArtifactError as error:
    assert len(log) == 4
    resource.setrlimit(resource.RLIMIT_FSIZE, ({resource.RLIM_INFINITY}, {resource.RLIM_INFINITY}))
    log.append("counted", {{"k": "after"}})
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert "cannot write" in done.stdout
    assert "free space" in done.stdout
    assert path.read_bytes().startswith(content)
    assert [event["k"] for event in EventLog(path)] == [0, 1, 2, 3, "after"]


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    log = EventLog(tmp_path / "search" / "events.jsonl")
    (tmp_path / "search").write_text("in the way")
    with pytest.raises(ArtifactError, match=r"cannot write .*events\.jsonl"):
        log.append("counted", {"k": 0})
