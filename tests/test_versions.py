"""One name for the content of many artifacts."""

from pathlib import Path

from mesa_pipeline.artifacts import content_version, write_records


def artifact(path: Path, content: str) -> Path:
    write_records(path, {"fingerprint": "f"}, [{"text": content}])
    return path


def test_equal_content_has_one_version_wherever_it_lies(tmp_path: Path):
    for place in ("here", "there"):
        artifact(tmp_path / place / "one.jsonl", "a")
        (tmp_path / place / "deep").mkdir()
        (tmp_path / place / "deep" / "page.html").write_text("<p>")
    assert content_version(tmp_path / "here") == content_version(tmp_path / "there")


def test_every_change_of_content_or_name_changes_the_version(tmp_path: Path):
    folder = tmp_path / "folder"
    seen = {content_version(folder)}
    path = artifact(folder / "one.jsonl", "a")
    seen.add(content_version(folder))
    artifact(path, "b")
    seen.add(content_version(folder))
    path.rename(folder / "two.jsonl")
    seen.add(content_version(folder))
    (folder / "page.html").write_text("<p>")
    seen.add(content_version(folder))
    (folder / "page.html").write_text("<b>")
    seen.add(content_version(folder))
    assert len(seen) == 6


def test_what_is_unfinished_does_not_count_and_a_file_moved_between_groups_does(tmp_path: Path):
    one, other = artifact(tmp_path / "one" / "a.jsonl", "a").parent, tmp_path / "other"
    version = content_version(one, other)
    (one / "b.jsonl.partial").write_text("{}")
    assert content_version(one, other) == version
    (one / "a.jsonl").rename(artifact(other / "b.jsonl", "b").with_name("a.jsonl"))
    (other / "b.jsonl").unlink()
    assert content_version(one, other) != version


def test_of_records_only_the_first_line_is_read(tmp_path: Path):
    path = artifact(tmp_path / "one.jsonl", "a")
    version = content_version(path)
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
    assert content_version(path) == version
