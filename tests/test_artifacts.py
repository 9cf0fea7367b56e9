import ast
import multiprocessing
import os
import resource
import signal
import string
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline import __version__, artifacts
from mesa_pipeline.artifacts import Journal, Layout
from mesa_pipeline.artifacts.layout import is_held
from mesa_pipeline.errors import ArtifactError, WorkspaceBusy

any_text = st.text(alphabet=st.characters(codec=None, categories=["L", "N", "P", "S", "Z", "C", "M"]))


@given(any_text, any_text)
def test_slugs_are_safe_names_and_distinct(one, other):
    name = artifacts.slug(one)
    assert set(name) <= set(string.ascii_letters + string.digits + "_-")
    assert 0 < len(name) < 64
    assert (artifacts.slug(one) == artifacts.slug(other)) == (one == other)


@pytest.mark.parametrize("hostile", ["../../x", "/etc/passwd", "a/b", "..", "", "con\x00", "\ud83d"])
def test_a_hostile_id_never_becomes_a_path(tmp_path, hostile):
    layout = Layout(tmp_path, "synthetic")
    path = layout.episode(artifacts.slug(hostile))
    assert path.parent == tmp_path / "synthetic" / "episodes"


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "a b"])
def test_a_dataset_name_that_is_no_folder_name_is_refused(tmp_path, name):
    with pytest.raises(ArtifactError):
        _ = Layout(tmp_path, name).root


def test_fingerprints_depend_on_every_part_and_on_nothing_else():
    assert artifacts.fingerprint("a", {"x": 1, "y": 2}) == artifacts.fingerprint("a", {"y": 2, "x": 1})
    assert artifacts.fingerprint("a", 1) != artifacts.fingerprint("a", "1")
    assert artifacts.fingerprint(["a", "b"]) != artifacts.fingerprint("a", "b")


@given(
    st.lists(st.dictionaries(any_text, st.one_of(any_text, st.integers(), st.floats(allow_nan=False, allow_infinity=False))))
)
def test_records_survive_the_round_trip(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("records") / "x.jsonl"
    artifacts.write_records(path, {"fingerprint": "f"}, records)
    assert list(artifacts.read_records(path, "make x")) == records
    assert artifacts.is_current(path, "f")
    assert not artifacts.is_current(path, "g")


def test_a_file_nested_without_end_is_damaged(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("[" * 100_000)
    with pytest.raises(ArtifactError, match="damaged"):
        artifacts.read_json(path, "make x")
    with pytest.raises(ArtifactError, match="damaged"):
        list(artifacts.read_records(path, "make x"))
    assert not artifacts.is_current(path, "f")


def test_a_write_broken_off_by_anything_leaves_nothing_behind(tmp_path):
    with pytest.raises(TypeError):
        artifacts.write_bytes(tmp_path / "x", "no bytes")
    assert list(tmp_path.iterdir()) == []


def test_not_a_number_is_never_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        artifacts.write_records(tmp_path / "x.jsonl", {"fingerprint": "f"}, [{"score": float("nan")}])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.splitlines(keepends=True)[0],
        lambda content: b"".join(content.splitlines(keepends=True)[:-1]),
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b'"score":1', b'"score":2'),
        lambda content: content.replace(b'"task":"t"', b'"task":"u"'),
        lambda content: b"",
        lambda content: b"[]\n",
        lambda content: b"{}\n",
    ],
    ids=["header alone", "a line short", "half", "edited", "header edited", "empty", "no object", "empty object"],
)
def test_records_cut_short_or_edited_are_refused_before_the_first_is_given(tmp_path, damage):
    path = tmp_path / "x.jsonl"
    artifacts.write_records(path, {"fingerprint": "f", "task": "t"}, [{"score": 1}, {"score": 3}])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ArtifactError, match="make x"):
        next(artifacts.read_records(path, "make x"))


unclaimed_names = any_text.filter(lambda key: key not in ("seal", "package_version"))


@given(st.dictionaries(unclaimed_names, st.one_of(any_text, st.floats(0, 1)), min_size=1))
def test_sealed_json_survives_the_round_trip(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("json") / "x.json"
    artifacts.write_sealed_json(path, value)
    assert artifacts.read_json(path, "make x") == value


@pytest.mark.parametrize("content", ["", "[]", "null", "{}", '{"train": ["a"'])
def test_json_that_is_no_object_is_damaged(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ArtifactError, match="make x"):
        artifacts.read_json(path, "make x")


def test_edited_sealed_json_is_refused(tmp_path):
    path = tmp_path / "x.json"
    artifacts.write_sealed_json(path, {"train": ["a"], "test": ["b"]})
    path.write_text(path.read_text().replace('"b"', '"a"'))
    with pytest.raises(ArtifactError, match=r"edited.*make x"):
        artifacts.read_json(path, "make x")


def test_json_of_another_version_names_file_version_and_remedy(tmp_path):
    path = tmp_path / "x.json"
    artifacts.write_sealed_json(path, {"train": ["a"]})
    assert artifacts.read_json_as(lambda value: value["train"], path, "make x") == ["a"]
    with pytest.raises(ArtifactError, match=rf"x\.json was written by mesa-pipeline {__version__}.*'test'.*`make x`"):
        artifacts.read_json_as(lambda value: value["test"], path, "make x")
    artifacts.write_json(path, {"train": ["a"], "seal": artifacts.fingerprint({"train": ["a"]})})
    assert artifacts.read_json(path, "make x") == {"train": ["a"]}
    with pytest.raises(ArtifactError, match="written by an earlier mesa-pipeline"):
        artifacts.read_json_as(lambda value: value["test"], path, "make x")


def test_a_workspace_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    layout = artifacts.Layout(tmp_path / "file", "synthetic")
    with pytest.raises(ArtifactError, match="--workspace"), artifacts.exclusive(layout):
        pass


def test_a_missing_artifact_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(ArtifactError, match="mesa sweep"):
        artifacts.read_json(tmp_path / "none.json", "mesa sweep")


@contextmanager
def no_room():
    """Files may grow to 100 bytes: what a full disk does to a writer, without filling one.

    Not a fixture: pytest's own output, where it goes to a file, must not meet the limit.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_old_content_and_no_rest(tmp_path):
    path = tmp_path / "x.json"
    artifacts.write_bytes(path, b"old")
    with no_room(), pytest.raises(ArtifactError, match="free space"):
        artifacts.write_bytes(path, b"new" * 100)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_journal_that_met_a_full_disk_is_continued(tmp_path):
    target = tmp_path / "x.jsonl"
    journal = Journal(target, {"fingerprint": "f"})
    journal.append([{"n": 1}])
    with no_room(), pytest.raises(ArtifactError, match="same command again"):
        journal.append([{"n": 2, "text": "x" * 200}])
    assert Journal(target, {"fingerprint": "f"}).records == [{"n": 1}]


def test_arrays_survive_and_equal_arrays_give_equal_bytes():
    arrays = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.zeros(0, dtype=np.int64)}
    content = artifacts.encode_arrays(arrays)
    assert content == artifacts.encode_arrays(dict(reversed(arrays.items())))
    found = artifacts.decode_arrays(content)
    assert {name: array.tolist() for name, array in found.items()} == {name: array.tolist() for name, array in arrays.items()}
    with pytest.raises(ValueError, match="Object arrays"):
        artifacts.encode_arrays({"o": np.array([object()])})


def test_threads_that_decode_arrays_never_meet_in_the_parser(monkeypatch):
    parsing, met = threading.Lock(), []

    def parse(text):
        met.append(not parsing.acquire(blocking=False))
        time.sleep(0.001)
        parsing.release()
        return literal_eval(text)

    literal_eval = ast.literal_eval
    monkeypatch.setattr(ast, "literal_eval", parse)
    content = artifacts.encode_arrays({"a": np.arange(3), "b": np.arange(4)})
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(artifacts.decode_arrays, [content] * 8))
    assert [arrays["b"].tolist() for arrays in found] == [[0, 1, 2, 3]] * 8
    assert met == [False] * 16


def test_a_journal_is_continued_where_it_was_cut(tmp_path):
    target = tmp_path / "x.jsonl"
    header = {"fingerprint": "f"}
    Journal(target, header).append([{"n": 1}, {"n": 2}])
    partial = tmp_path / "x.jsonl.partial"
    with partial.open("ab") as file:
        file.write(b'{"n": 3')
    again = Journal(target, header)
    assert again.records == [{"n": 1}, {"n": 2}]
    again.append([{"n": 3}])
    again.finish(again.records)
    assert not partial.exists()
    assert artifacts.is_current(target, "f")
    assert list(artifacts.read_records(target, "make x")) == [{"n": 1}, {"n": 2}, {"n": 3}]


@given(st.integers(min_value=0, max_value=200))
def test_a_journal_cut_at_any_byte_keeps_every_whole_record(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("journal")
    target = folder / "x.jsonl"
    header = {"fingerprint": "f"}
    records = [{"n": n, "text": "ä\ud83d\x00"} for n in range(4)]
    Journal(target, header).append(records)
    partial = folder / "x.jsonl.partial"
    content = partial.read_bytes()[:cut]
    partial.write_bytes(content)
    assert Journal(target, header).records == records[: max(content.count(b"\n") - 1, 0)]


def test_a_journal_of_something_else_is_started_anew(tmp_path):
    target = tmp_path / "x.jsonl"
    Journal(target, {"fingerprint": "old"}).append([{"n": 1}])
    assert Journal(target, {"fingerprint": "new"}).records == []


def test_what_is_incomplete_can_be_read_and_continued(tmp_path):
    target = tmp_path / "x.jsonl"
    journal = Journal(target, {"fingerprint": "f"})
    journal.append([{"n": 1}])
    journal.publish_incomplete(journal.records)
    assert not artifacts.is_current(target, "f")
    assert list(artifacts.read_records(target, "make x")) == [{"n": 1}]
    assert Journal(target, {"fingerprint": "f"}).records == [{"n": 1}]


def _hold(layout, held, part=None):
    with artifacts.exclusive(layout, part):
        held.set()
        signal.pause()


@contextmanager
def held_by_another(layout, part=None):
    """The process that holds it, killed in the end."""
    spawn = multiprocessing.get_context("spawn")
    held = spawn.Event()
    owner = spawn.Process(target=_hold, args=(layout, held, part))
    owner.start()
    try:
        assert held.wait(30)
        yield owner
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        owner.join()


def test_a_workspace_has_one_owner_and_a_killed_owner_frees_it(tmp_path):
    layout = Layout(tmp_path, "synthetic")
    with held_by_another(layout) as owner:
        for part in (None, "build-S"):
            with pytest.raises(WorkspaceBusy, match=str(owner.pid)), artifacts.exclusive(layout, part):
                pass
    with artifacts.exclusive(layout):
        pass


def test_parts_of_a_workspace_have_an_owner_each_and_keep_out_who_wants_the_whole(tmp_path):
    layout = Layout(tmp_path, "synthetic")
    with artifacts.exclusive(layout):
        pass  # leaves this process's id behind
    with held_by_another(layout, "build-S") as owner:
        with artifacts.exclusive(layout, "build-V"):
            assert is_held(layout)
        for part in (None, "build-S"):
            with pytest.raises(WorkspaceBusy, match=f"process {owner.pid} is"), artifacts.exclusive(layout, part):
                pass
    assert not is_held(layout)
    with artifacts.exclusive(layout, "build-S"):
        pass


def test_who_works_in_a_workspace_finds_what_runs_for_it_and_nobody_else_reads_it(tmp_path):
    services = artifacts.RunningServices(
        17, {"mlflow": "postgresql://mesa:secret@db/mlflow"}, {"Asset graph": "http://127.0.0.1:3000"}
    )
    services.write(tmp_path)
    assert artifacts.RunningServices.of(tmp_path) is None, "no owner holds the lock"
    with artifacts.exclusive(Layout(tmp_path, "services")):
        assert artifacts.RunningServices.of(tmp_path) == services
    written = tmp_path / "services" / "running.json"
    written.chmod(0o644)
    services.write(tmp_path)
    assert written.stat().st_mode & 0o077 == 0
