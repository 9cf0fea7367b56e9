"""The search as a stage: what it depends on, what it continues, what it never opens."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mesa_pipeline.artifacts import exclusive, fingerprint, write_json
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import ArtifactError, WorkspaceBusy
from mesa_pipeline.evaluation.evaluate import evaluate_policy
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.search.store import EVALUATED, SearchStore
from mesa_pipeline.stages.optimize import optimize, read_archive, read_frozen, read_result
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.storage import read_manifest
from mesa_pipeline.stages.table import read_table
from mesa_pipeline.tracking import NullTracker
from tests.conftest import REPOSITORY
from tests.llm.misbehaving_server import MisbehavingServer, say
from tests.pipeline import SMALL, copy_of
from tests.search.searches import contents

SEED = 1


@pytest.fixture
def context(finished, tmp_path):
    return copy_of(finished, tmp_path)


def changed(context, *overrides):
    return dataclasses.replace(context, settings=load_settings(REPOSITORY / "params.yaml", [*SMALL, *overrides], {}))


def searched(context) -> dict[str, bytes]:
    """Run the stage; what lies in its folder afterwards."""
    optimize(context, SEED, NullTracker())
    return contents(context.layout.policy(SEED))


def search_folder(context) -> Path:
    """Of the search that the stored result came from."""
    return context.layout.policy(SEED) / "search" / read_result(context, SEED).search


def log_of(context) -> bytes:
    return (search_folder(context) / "events.jsonl").read_bytes()


def forget(context) -> None:
    """Leave nothing of the search."""
    shutil.rmtree(search_folder(context))
    (context.layout.policy(SEED) / "search.json").unlink()


def test_the_result_counts_what_was_tried_and_names_what_was_chosen(finished):
    result, archive = read_result(finished, SEED), read_archive(finished, SEED)
    assert result.planned == 6 == result.evaluated + result.invalid + result.duplicates
    assert (result.iterations, result.rule, result.proposer) == (2, "argmax", "template")
    assert result.chosen == archive.frontier.id
    assert len(archive.entries) == result.evaluated + 1


def test_what_is_frozen_is_worth_what_the_archive_says(finished):
    frozen, entry = read_frozen(finished, SEED), read_archive(finished, SEED).frontier
    validation = read_table(finished, read_split(finished, SEED).val).matrix
    assert evaluate_policy(frozen.fitted, validation, finished.settings.search.lambda_).objective == entry.validation.objective
    assert frozen.validation == entry.validation
    store = SearchStore(search_folder(finished))
    chosen = frozen.fitted.choices(policy_inputs(validation, True))
    assert np.array_equal(chosen, store.choices(entry.behaviour).validation)
    assert frozen.fitted.state == store.state(store.find(EVALUATED, entry.id)["state"])


def test_test_outcomes_change_nothing_whatever_becomes_of_them(finished, tmp_path):
    """Searched anew with the test episodes' outcomes gone, and with other ones: the same bytes."""
    before = contents(finished.layout.policy(SEED))
    held_out = set(read_split(finished, SEED).test)
    for name, fate in {"gone": lambda path: path.unlink(), "other": lambda path: path.write_bytes(b"{}\n")}.items():
        context = copy_of(finished, tmp_path / name)
        forget(context)
        for entry in read_manifest(context.layout).episodes:
            if entry.id in held_out:
                fate(context.layout.outcomes(entry.key))
        assert searched(context) == before


@pytest.mark.parametrize("name", ["search.json", "frozen/manifest.json", "frozen/policy.py", "frozen/state.json"])
@pytest.mark.parametrize("fate", [lambda path: path.unlink(), lambda path: path.write_bytes(b"tampered")])
def test_what_is_missing_or_was_tampered_with_is_made_again_from_the_log(name, fate, finished, context):
    fate(context.layout.policy(SEED) / name)
    assert searched(context) == contents(finished.layout.policy(SEED))


@pytest.mark.parametrize("fate", [lambda log: b"", lambda log: b"".join(log.splitlines(keepends=True)[:3]), None])
def test_a_log_that_lost_events_is_noticed_and_searched_again(fate, finished, context):
    path = search_folder(context) / "events.jsonl"
    path.unlink() if fate is None else path.write_bytes(fate(path.read_bytes()))
    with pytest.raises(ArtifactError, match="mesa optimize"):
        read_archive(context, SEED)
    assert searched(context) == contents(finished.layout.policy(SEED))


def test_a_result_of_an_earlier_version_is_told_and_made_again_from_the_log(finished, context):
    path = context.layout.policy(SEED) / "search.json"
    stored = {name: value for name, value in json.loads(path.read_text()).items() if name not in ("search", "seal")}
    write_json(path, {**stored, "seal": fingerprint(stored)})
    for read in (read_result, read_archive):
        with pytest.raises(ArtifactError, match=rf"{path} was written by mesa-pipeline .*'search'.*mesa optimize --seed 1"):
            read(context, SEED)
    assert searched(context) == contents(finished.layout.policy(SEED))


def test_more_iterations_continue_the_log_and_fewer_use_its_beginning(finished, context):
    log = log_of(context)
    more = searched(changed(context, "search.iterations=3"))
    assert log_of(context).startswith(log)
    assert len(log_of(context)) > len(log)
    assert json.loads(more["search.json"])["planned"] == 9
    assert len(read_archive(context, SEED).entries) == json.loads(more["search.json"])["evaluated"] + 1
    fewer = searched(context)
    same = {name for name in fewer if not name.startswith("search/")}
    before = contents(finished.layout.policy(SEED))
    assert {name: fewer[name] for name in same} == {name: before[name] for name in same}


@pytest.mark.parametrize("override", ["search.select=crossfit", "search.refit=true", "policies.route_keys=[qa_type]"])
def test_what_decides_on_the_choice_alone_searches_nothing_anew(override, context):
    log, before = log_of(context), read_result(context, SEED).fingerprint
    searched(changed(context, override))
    assert log_of(context) == log
    assert read_result(context, SEED).fingerprint != before


@pytest.mark.parametrize(
    "override",
    ["search.labels=false", "search.ucb.beta=0", "search.lambda=0.01", "search.max_structures=1", "search.slots=[explore]"],
)
def test_what_may_change_an_iteration_is_another_search_and_leaves_the_first(override, context):
    before, first = contents(context.layout.policy(SEED)), search_folder(context)
    after = searched(changed(context, override))
    assert search_folder(context) != first
    kept = {name: content for name, content in before.items() if name.startswith("search/")}
    assert kept.items() <= after.items()
    assert searched(context).items() >= before.items()


@pytest.mark.parametrize("override", ["run.workers=2", "evaluation.bootstrap_samples=300", "policies.lookup_keys=[[domain]]"])
def test_what_changes_no_result_makes_nothing_again(override, context):
    assert optimize(changed(context, override), SEED, NullTracker()).kept == 1


def test_two_workers_find_the_same(finished, context):
    context = changed(context, "run.workers=2")
    forget(context)
    assert searched(context) == contents(finished.layout.policy(SEED))


def test_a_second_process_is_refused_but_may_read_what_is_finished(context):
    with exclusive(context.layout):
        assert optimize(context, SEED, NullTracker()).kept == 1
        with pytest.raises(WorkspaceBusy, match="is working on 'synthetic'"):
            optimize(changed(context, "search.iterations=3"), SEED, NullTracker())
    assert read_result(context, SEED).planned == 6


def test_progress_is_told(context):
    told = []
    watched = dataclasses.replace(changed(context, "search.iterations=3"), watch_search=told.append)
    optimize(watched, SEED, NullTracker())
    assert [progress.iteration for progress in told] == [0, 1, 2, 3]


def test_without_a_search_the_command_is_named(prepared):
    for read in (read_result, read_archive):
        with pytest.raises(ArtifactError, match="mesa optimize --seed 1"):
            read(prepared, SEED)
    with pytest.raises(ArtifactError, match="mesa optimize"):
        read_frozen(prepared, SEED)


def test_without_outcomes_the_command_is_named(prepared):
    with pytest.raises(ArtifactError, match="mesa sweep"):
        optimize(prepared, SEED, NullTracker())


def test_a_search_whose_candidates_are_all_invalid_is_said_to_have_tried_nothing(context, caplog):
    with MisbehavingServer(otherwise=say("I had rather not.")) as server:
        endpoint = (f"llm.chat.base_url={server.base_url}", "search.proposer=llm", "search.iterations=1")
        summary = optimize(changed(context, *endpoint), SEED, NullTracker())
    assert "3 planned: 0 evaluated, 0 duplicates, 3 invalid" in str(summary.facts["candidates"])
    assert "tried nothing: all 3 candidates were invalid or repeated" in caplog.text


def test_a_search_that_tried_something_is_not(context, caplog):
    optimize(changed(context, "search.iterations=1"), SEED, NullTracker())
    assert "tried nothing" not in caplog.text
