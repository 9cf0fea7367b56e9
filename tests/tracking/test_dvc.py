"""What DVC has recorded of artifacts, and having it record more. DVC's own program is tried in tests/test_dvc_pipeline.py."""

import hashlib
import json
from pathlib import Path

import pytest
import yaml

from mesa_pipeline.artifacts import write_records
from mesa_pipeline.errors import WorkFailed
from mesa_pipeline.tracking.dvc import DvcRepository


def artifact(path: Path, content: str) -> Path:
    write_records(path, {"fingerprint": "f"}, [{"text": content}])
    return path


def track(root: Path, folder: Path, stage: str = "build@raw") -> str:
    """Cache and lock a folder as DVC would; returns its hash."""
    members = [
        {"md5": cached(root, path.read_bytes()), "relpath": path.relative_to(folder).as_posix()}
        for path in sorted(folder.rglob("*.jsonl"))
    ]
    md5 = cached(root, json.dumps(members, sort_keys=True).encode(), suffix=".dir")
    out = {"path": folder.relative_to(root).as_posix(), "hash": "md5", "md5": md5}
    lock = {"schema": "2.0", "stages": {stage: {"cmd": "mesa", "deps": [{"path": "data.json", "md5": "0"}], "outs": [out]}}}
    (root / "dvc.lock").write_text(yaml.safe_dump(lock))
    return md5


def cached(root: Path, content: bytes, suffix: str = "") -> str:
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest() + suffix
    place = root / ".dvc" / "cache" / "files" / "md5" / md5[:2] / md5[2:]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return md5


def program(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "dvc"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "clone" / ".dvc").mkdir(parents=True)
    artifact(tmp_path / "clone" / "workspace" / "memories" / "raw" / "one.jsonl", "a")
    return tmp_path / "clone"


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "workspace" / "memories" / "raw"


def test_a_workspace_outside_any_repository_has_none(tmp_path: Path):
    assert DvcRepository.around(tmp_path / "workspace") is None


def test_what_dvc_has_never_seen_has_no_hash(root: Path, folder: Path):
    repository = DvcRepository.around(root / "workspace")
    assert repository is not None
    assert repository.root == root
    assert repository.recorded(folder) is None


def test_the_hash_is_told_only_while_the_artifacts_are_those_recorded(root: Path, folder: Path):
    md5 = track(root, folder)
    repository = DvcRepository.around(root / "workspace")
    assert repository is not None
    assert repository.recorded(folder) == md5
    artifact(folder / "one.jsonl", "b")
    assert repository.recorded(folder) is None
    artifact(folder / "one.jsonl", "a")
    assert repository.recorded(folder) == md5
    artifact(folder / "two.jsonl", "a")
    assert repository.recorded(folder) is None


def test_a_hash_whose_content_is_not_in_the_cache_is_not_vouched_for(root: Path, folder: Path):
    md5 = track(root, folder)
    (root / ".dvc" / "cache" / "files" / "md5" / md5[:2] / md5[2:]).unlink()
    assert DvcRepository(root, None).recorded(folder) is None


def test_only_what_is_tracked_and_changed_is_recorded(root: Path, folder: Path, tmp_path: Path):
    told = tmp_path / "told"
    repository = DvcRepository(root, program(tmp_path, f'echo "$PWD $@" >> {told}'))
    repository.record([folder])
    track(root, folder)
    repository.record([folder, root / "workspace" / "other"])
    assert not told.exists()
    artifact(folder / "one.jsonl", "b")
    repository.record([folder])
    assert told.read_text() == f"{root} commit --quiet --force build@raw\n"


def test_a_refusal_says_what_dvc_said(root: Path, folder: Path, tmp_path: Path):
    track(root, folder)
    artifact(folder / "one.jsonl", "b")
    with pytest.raises(WorkFailed, match=r"build@raw.*another process"):
        DvcRepository(root, program(tmp_path, "echo another process works here >&2; exit 255")).record([folder])


def test_a_record_is_made_from_the_data_that_its_stage_names(root: Path, folder: Path):
    track(root, folder)
    repository = DvcRepository(root, None)
    assert repository.is_made_from(folder, None)
    assert repository.is_made_from(folder, root / "data.json")
    assert not repository.is_made_from(folder, root / "other.json")
    assert not repository.is_made_from(folder, Path("/elsewhere/data.json"))


@pytest.mark.parametrize("lock", ["", "stages:", "stages: [", "- 1"])
def test_an_unreadable_lock_records_nothing(root: Path, folder: Path, lock: str):
    (root / "dvc.lock").write_text(lock)
    assert DvcRepository(root, None).recorded(folder) is None
