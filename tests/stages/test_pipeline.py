"""The stages together: what is made once is left alone, and only what depends on a change is made again."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import read_header
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import ArtifactError, DataError
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.models import open_reading
from mesa_pipeline.stages.optimize import optimize
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.split import read_split, split
from mesa_pipeline.stages.storage import read_manifest, read_outcomes
from mesa_pipeline.stages.table import read_table
from mesa_pipeline.stages.test import read_test
from mesa_pipeline.stages.test import test as run_test
from mesa_pipeline.tracking import NullTracker
from tests.conftest import REPOSITORY
from tests.pipeline import SMALL, conclude, copy_of, prepare, run_all


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def with_settings(context, *overrides):
    return dataclasses.replace(context, settings=load_settings(REPOSITORY / "params.yaml", [*SMALL, *overrides], {}))


def test_every_question_has_an_outcome_for_every_subset(finished):
    manifest = read_manifest(finished.layout)
    outcomes = [outcome for entry in manifest.episodes for outcome in read_outcomes(finished.layout, entry.key)]
    cells = {(outcome.question_id, outcome.subset) for outcome in outcomes}
    assert len(cells) == len(outcomes) == manifest.question_count * len(subsets.ALL_SUBSETS)
    assert all(outcome.score is not None and 0 <= outcome.score <= 1 for outcome in outcomes)


def test_a_second_run_does_nothing(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    before = contents(tmp_path)
    summaries = run_all(context)
    assert [summary.stage for summary in summaries if summary.made] == []
    assert contents(tmp_path) == before


def test_changing_how_one_structure_is_read_makes_again_only_what_depends_on_it(finished, tmp_path):
    context = with_settings(copy_of(finished, tmp_path), "structures.raw.top_k=1")
    made = {summary.stage for summary in run_all(context) if summary.made}
    assert made >= {"retrieve raw", "sweep"}
    assert not any(stage.startswith(("ingest", "build", "split")) for stage in made)
    assert not any(stage.startswith("retrieve") and stage != "retrieve raw" for stage in made)


def test_changing_how_one_structure_is_built_leaves_the_other_memories_alone(finished, tmp_path):
    context = with_settings(copy_of(finished, tmp_path), "structures.raw.max_window=4")
    made = {summary.stage for summary in prepare(context) if summary.made}
    assert made == {"build raw", "retrieve raw"}


def test_changing_the_token_price_makes_nothing_again_before_the_search(finished, tmp_path):
    context = with_settings(copy_of(finished, tmp_path), "search.lambda=0.001")
    assert [summary.stage for summary in prepare(context) if summary.made] == []
    assert {summary.stage for summary in conclude(context) if summary.made} >= {"optimize seed 0", "test seed 0", "report"}


def test_the_same_frozen_policy_is_tested_once(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    before = json.loads(context.layout.test(0).read_text())["receipt"]
    conclude(context)
    assert json.loads(context.layout.test(0).read_text())["receipt"] == before


def test_every_test_of_a_split_leaves_its_receipt(finished, tmp_path):
    """Of two policies in turn: the first test of each is remembered, whichever is tested last."""
    context = copy_of(finished, tmp_path)
    other = with_settings(context, "search.select=one-se-cheapest")
    first = read_test(context, 0).receipt
    for tested in (other, context, context):
        optimize(tested, 0, NullTracker())
        summary = run_test(tested, 0, NullTracker())
        assert summary.facts["other_tests_of_this_seed"] == 1
    found = read_test(context, 0)
    assert found.receipt == first
    assert [receipt.outcomes_sha256 for receipt in found.earlier] == [first.outcomes_sha256]
    assert found.earlier[0].manifest_sha256 != first.manifest_sha256


def test_the_search_opens_no_test_outcomes(finished, tmp_path):
    """With the test episodes' outcomes gone, the search finds the same policy; the test says what is missing."""
    context = copy_of(finished, tmp_path)
    held_out = set(read_split(context, 0).test)
    for entry in read_manifest(context.layout).episodes:
        if entry.id in held_out:
            context.layout.outcomes(entry.key).unlink()
    frozen = context.layout.policy(0) / "frozen"
    before = contents(frozen)
    (context.layout.policy(0) / "search.json").unlink()
    with pytest.raises(ArtifactError, match="mesa sweep"):
        conclude(context)
    assert contents(frozen) == before


def test_outdated_outcomes_are_never_read(finished, tmp_path):
    context = with_settings(copy_of(finished, tmp_path), "structures.raw.top_k=1")
    ids = [entry.id for entry in read_manifest(context.layout).episodes]
    with pytest.raises(ArtifactError, match=r"outdated.*mesa sweep"):
        read_table(context, ids)


def test_two_runs_and_another_hash_seed_give_the_same_bytes(finished, tmp_path):
    overrides = [argument for override in SMALL for argument in ("--set", override)]
    command = [sys.executable, "-m", "mesa_pipeline.cli", "run", "--workspace", str(tmp_path), *overrides]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "77"}, cwd=REPOSITORY, capture_output=True)
    ours, theirs = contents(finished.layout.root), contents(tmp_path / "synthetic")
    timeless = {
        name for name in ours if name.split("/")[0] in {"episodes", "memories", "evidence", "outcomes", "splits", "policies"}
    }
    assert len(timeless) > 100
    assert {name for name in timeless if ours[name] != theirs.get(name)} == set()


def test_a_missing_structure_is_named_with_its_commands(prepared, tmp_path):
    context = copy_of(prepared, tmp_path)
    for path in context.layout.evidence("graph", "x").parent.glob("*"):
        path.unlink()
    from mesa_pipeline.stages.sweep import sweep

    with pytest.raises(ArtifactError, match=r"graph evidence.*mesa retrieve --structure G"):
        sweep(context)


def test_removed_episodes_leave_nothing_behind(finished, tmp_path):
    context = with_settings(copy_of(finished, tmp_path), "datasets.synthetic.episodes=8")
    prepare(context)
    keys = {entry.key for entry in read_manifest(context.layout).episodes}
    assert len(keys) == 8
    for folder in ("episodes", "memories", "evidence"):
        for path in (context.layout.root / folder).rglob("*.jsonl"):
            assert path.stem in keys


def test_a_wrong_data_path_writes_nothing(small_settings, tmp_path):
    from mesa_pipeline.artifacts import Layout
    from mesa_pipeline.stages.context import StageContext

    context = StageContext(Layout(tmp_path, "locomo"), small_settings, data_path=tmp_path / "nowhere.json")
    with pytest.raises(DataError, match=r"nowhere\.json"):
        ingest(context)
    with pytest.raises(DataError, match="--data"):
        ingest(dataclasses.replace(context, data_path=None))
    assert list(tmp_path.iterdir()) == []


def test_headers_name_the_episode_and_what_made_the_outcomes(finished):
    entry = read_manifest(finished.layout).episodes[0]
    header = read_header(finished.layout.outcomes(entry.key))
    assert header is not None
    assert header["episode_id"] == entry.id
    reading = open_reading(finished.settings, finished.layout)
    assert (header["reader"], header["tokenizer"]) == (reading.reader.name, reading.counter.name)
    assert header["reward"] == reading.reward.name
    assert header["build"]["V"]["embedder"] == "all-MiniLM-L6-v2"
    assert "model" not in json.dumps([header["build"], header["retrieve"]]), "no language model had a part in them"


def test_outcomes_cut_short_are_noticed_before_they_count(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    entry = next(entry for entry in read_manifest(context.layout).episodes if entry.id in read_split(context, 0).test)
    path = context.layout.outcomes(entry.key)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(ArtifactError, match="mesa sweep"):
        run_test(context, 0, NullTracker())


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:-9], lambda content: content[::-1]])
def test_damaged_arrays_of_a_memory_are_named_with_the_command_that_makes_them(finished, tmp_path, damage):
    context = copy_of(finished, tmp_path)
    entry = read_manifest(context.layout).episodes[0]
    path = context.layout.memory("vector", entry.key).with_suffix(".npz")
    path.write_bytes(damage(path.read_bytes()))
    context.layout.evidence("vector", entry.key).unlink()
    failed = retrieve(context, "V").failed
    assert len(failed) == 1
    assert "mesa build --structure V" in failed[0]


def test_a_split_edited_by_hand_is_refused_and_drawn_anew(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    drawn = read_split(context, 0)
    path = context.layout.split(0)
    path.write_text(path.read_text().replace(drawn.test[0], drawn.train[0]))
    with pytest.raises(ArtifactError, match="mesa split --seed 0"):
        read_split(context, 0)
    assert split(context, 0).made == 1
    assert read_split(context, 0) == drawn
