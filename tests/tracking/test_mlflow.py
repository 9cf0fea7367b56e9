"""The tracker against a real MLflow store, read back through MLflow's own client."""

from dataclasses import replace
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout, RunningServices, exclusive
from mesa_pipeline.artifacts.services import POLICIES_SHOWN, SERVICES
from mesa_pipeline.config import TrackingSettings
from mesa_pipeline.errors import MissingDependency, Unreachable
from mesa_pipeline.services.postgres import EmbeddedPostgres
from mesa_pipeline.tracking import (
    CHALLENGER,
    CHAMPION,
    NullTracker,
    TrackedCandidate,
    TrackedPolicy,
    TrackedSearch,
    TrackedTest,
    Tracker,
    open_tracker,
)

SEARCH = TrackedSearch("toy", seed=3, key="abc123", params={"lambda": 1e-6, "reader": "extractive"})
CANDIDATES = [
    TrackedCandidate(
        "all",
        {"score": 0.30, "tokens": 900.0, "objective": 0.2991},
        '{"subset": 31}',
        params={"slot": "explore", "hypothesis": "more is better"},
    ),
    TrackedCandidate("S+T", {"score": 0.35, "tokens": None, "objective": float("nan")}, '{"subset": 3}', valid=False),
]
TABLES = {"policies": [{"policy": "all", "score": 30.0}, {"policy": "S\x00+T\ud800", "score": None}]}


def record(tracker: Tracker, search: TrackedSearch, policy: TrackedPolicy, aliases=()) -> None:
    with tracker.search(search) as run:
        for step, candidate in enumerate(CANDIDATES):
            run.candidate(candidate)
            run.progress(step, {"best/J": 0.30 + step / 20, "unknown": None})
        run.freeze(policy, aliases)
    tracker.test(search, TrackedTest({"test/J": 0.33, "test/low": None, "test of others/a, b/J": 0.3}, TABLES))


def runs_of(client, search: TrackedSearch):
    experiment = client.get_experiment_by_name(search.dataset)
    runs = client.search_runs([experiment.experiment_id])
    parents = [run for run in runs if run.data.tags.get("mesa.search_key") == search.key]
    ids = {run.info.run_id for run in parents}
    return parents, [run for run in runs if run.data.tags.get("mlflow.parentRunId") in ids]


def test_a_search_becomes_a_parent_run_with_a_child_per_candidate(tracker: Tracker, client, policy: TrackedPolicy):
    record(tracker, SEARCH, policy)

    (parent,), children = runs_of(client, SEARCH)
    assert parent.info.status == "FINISHED"
    assert parent.data.params == {"seed": "3", "lambda": "1e-06", "reader": "extractive"}
    assert parent.data.metrics == {"J": 0.35, "test/J": 0.33, "test of others/a b/J": 0.3, "best/J": 0.35, "iterations": 1.0}
    assert parent.data.tags["dagster.run_id"] == "r1"
    found = {child.info.run_name: child for child in children}
    assert found["all"].data.metrics == {"score": 0.30, "tokens": 900.0, "objective": 0.2991}
    assert found["all"].data.params == {"slot": "explore", "hypothesis": "more is better"}
    assert found["all"].data.tags["mesa.split_seed"] == "3"
    assert {run.data.tags["mesa.search"] for run in (parent, *children)} == {"search-seed-3"}
    assert found["all"].info.status == "FINISHED"
    assert found["S+T"].data.metrics == {"score": 0.35}, "what is not known is not logged"
    assert found["S+T"].data.tags["mesa.valid"] == "false"
    assert found["S+T"].info.status == "FAILED", "what was refused shows as failed"
    source = Path(client.download_artifacts(found["all"].info.run_id, "policy.json"))
    assert source.read_text() == '{"subset": 31}'


def test_a_variation_of_the_settings_is_told_by_the_name_of_its_search():
    assert TrackedSearch("toy", seed=3, key="a").name == "search-seed-3"
    assert TrackedSearch("toy", seed=3, key="b", variation="without-priors").name == "search-seed-3-without-priors"


def test_how_a_search_went_is_a_history_by_step(tracker: Tracker, client, policy: TrackedPolicy):
    search = TrackedSearch("toy", seed=6, key="history")
    record(tracker, search, policy)
    record(tracker, search, policy)

    (parent,), _ = runs_of(client, search)
    history = client.get_metric_history(parent.info.run_id, "best/J")
    assert [(point.step, point.value) for point in history] == [(0, 0.30), (1, 0.35)]


def test_what_an_interrupted_search_had_reached_is_recorded(tracker: Tracker, client):
    search = TrackedSearch("toy", seed=7, key="stopped")
    with pytest.raises(KeyboardInterrupt), tracker.search(search) as run:
        run.progress(0, {"best/J": 0.1})
        raise KeyboardInterrupt
    with tracker.search(search) as run:
        run.progress(0, {"best/J": 0.1})
        run.progress(1, {"best/J": 0.2})

    (parent,), _ = runs_of(client, search)
    history = client.get_metric_history(parent.info.run_id, "best/J")
    assert [(point.step, point.value) for point in history] == [(0, 0.1), (1, 0.2)]


def test_sources_that_no_encoding_holds_are_kept_in_escapes(tracker: Tracker, client):
    search = TrackedSearch("toy", seed=8, key="odd")
    with tracker.search(search) as run:
        run.candidate(TrackedCandidate("odd", {}, "x = '\ud800'", "policy.py", params={"reason": "\x00" * 9000}))

    _, (child,) = runs_of(client, search)
    source = Path(client.download_artifacts(child.info.run_id, "policy.py"))
    assert source.read_text() == "x = '\\ud800'"


def test_recording_the_same_search_again_adds_nothing(tracker: Tracker, client, policy: TrackedPolicy):
    search = TrackedSearch("toy", seed=4, key="rerun")
    record(tracker, search, policy)
    record(tracker, search, policy)

    parents, children = runs_of(client, search)
    assert len(parents) == 1
    assert sorted(child.info.run_name for child in children) == ["S+T", "all"]
    assert len(client.search_model_versions(f"run_id = '{parents[0].info.run_id}'")) == 1
    assert len(client.get_metric_history(parents[0].info.run_id, "test/J")) == 1


def test_an_interrupted_search_is_marked_failed_and_continued(tracker: Tracker, client, policy: TrackedPolicy):
    search = TrackedSearch("toy", seed=5, key="interrupted")
    with pytest.raises(KeyboardInterrupt), tracker.search(search) as run:
        run.candidate(CANDIDATES[0])
        raise KeyboardInterrupt
    (parent,), _ = runs_of(client, search)
    assert parent.info.status == "FAILED"

    record(tracker, search, policy)
    (parent,), children = runs_of(client, search)
    assert parent.info.status == "FINISHED"
    assert len(children) == 2


def test_aliases_point_at_the_policy_said_last_and_what_is_registered_is_plain_files(tracker: Tracker, client, policy):
    champion, other = TrackedSearch("registry", 0, "first"), TrackedSearch("registry", 1, "second")
    record(tracker, champion, policy, ["seed-0", CHAMPION])
    record(tracker, other, policy, ["seed-1"])
    assert found(client, CHAMPION).run_id == runs_of(client, champion)[0][0].info.run_id
    assert found(client, "seed-1").run_id == runs_of(client, other)[0][0].info.run_id

    tracker.promote(other, policy, CHAMPION)
    tracker.promote(champion, policy, CHALLENGER)
    version = found(client, CHAMPION)
    assert version.run_id == runs_of(client, other)[0][0].info.run_id
    assert (version.tags["mesa.profile"], version.tags["mesa.split_seed"]) == ("offline", "1")
    assert version.description == "reads S and T"
    assert len(client.search_model_versions("name = 'policy-registry'")) == 2
    stored = Path(version.source.removeprefix("file://"))
    files = sorted(str(path.relative_to(stored)) for path in stored.rglob("*") if path.is_file())
    assert files == ["MLmodel", "frozen/policy.json", "input_example.json", "python_env.yaml", "requirements.txt"]


def test_a_policy_whose_search_was_never_recorded_can_be_promoted(tracker: Tracker, client, policy):
    search = TrackedSearch("registry", 9, "unheard of")
    tracker.promote(search, policy, CHALLENGER)
    assert found(client, CHALLENGER).tags["mesa.search_key"] == "unheard of"

    record(tracker, search, policy)
    parents, children = runs_of(client, search)
    assert (len(parents), len(children)) == (1, 2)
    assert len(client.search_model_versions(f"run_id = '{parents[0].info.run_id}'")) == 1


def found(client, alias: str):
    return client.get_model_version_by_alias("policy-registry", alias)


def test_artifacts_lie_in_the_workspace(tracker: Tracker, client, policy: TrackedPolicy, layout: Layout):
    record(tracker, SEARCH, policy)
    (parent,), _ = runs_of(client, SEARCH)
    assert parent.info.artifact_uri.startswith(layout.tracking_artifacts.as_uri())


def test_an_unreachable_place_of_record_says_what_to_do_and_hides_the_password(layout: Layout):
    tracker = open_tracker(TrackingSettings(enabled=True, uri="nonsense://me:secret@host"), layout)
    with pytest.raises(MissingDependency, match=r"tracking\.enabled=false") as raised, tracker.search(SEARCH):
        pass
    assert "secret" not in str(raised.value)
    assert not raised.value.transient, "it is no address, however often it is tried"


def test_a_server_that_is_down_may_be_there_later(layout: Layout):
    settings = TrackingSettings(enabled=True, uri="http://me:secret@127.0.0.1:1")
    with pytest.raises(Unreachable, match=r"tracking\.enabled=false") as raised, open_tracker(settings, layout).search(SEARCH):
        pass
    assert "secret" not in str(raised.value)


def test_a_postgresql_that_does_not_let_us_in_is_given_up_at_once_and_said_without_the_password(
    layout: Layout, postgres: EmbeddedPostgres
):
    """MLflow itself would try for minutes, and the run of a step again and again."""
    uri = postgres.url("nowhere").replace("://mesa@", "://mesa:secret@")
    tracker = open_tracker(TrackingSettings(enabled=True, uri=uri), layout)
    with pytest.raises(MissingDependency, match=r'database "nowhere" does not exist.*tracking\.enabled=false') as raised:
        tracker.promote(SEARCH, TrackedPolicy(layout.root, {}), CHAMPION)
    assert "secret" not in str(raised.value)
    assert not raised.value.transient


@pytest.mark.parametrize("address", ["host?secret@db", "me:se?cret@host", "me@host?password=secret@1"])
def test_no_part_of_an_address_that_may_be_a_password_is_shown(layout: Layout, address: str):
    tracker = open_tracker(TrackingSettings(enabled=True, uri=f"nonsense://{address}"), layout)
    with pytest.raises(MissingDependency) as raised, tracker.search(SEARCH):
        pass
    assert not any(piece in str(raised.value) for piece in ("secret", "me:se", "cret"))


def test_the_database_and_the_pages_of_what_runs_for_the_workspace_are_used(
    tracker: Tracker, layout: Layout, client, policy: TrackedPolicy
):
    record(tracker, SEARCH, policy)
    settings = TrackingSettings(enabled=True, uri=None)
    assert open_tracker(settings, layout).page("toy") is None, "no server shows the file"
    database = f"sqlite:///{layout.tracking_database}?running"
    with exclusive(Layout(layout.workspace, SERVICES)):
        RunningServices(1, {"mlflow": database}, {POLICIES_SHOWN: "http://127.0.0.1:1/"}).write(layout.workspace)
        running = open_tracker(settings, layout)
        assert running.uri == database
    experiment = client.get_experiment_by_name("toy").experiment_id
    assert replace(running, uri=tracker.uri).page("toy") == f"http://127.0.0.1:1/#/experiments/{experiment}/runs"
    assert open_tracker(settings, layout).uri == f"sqlite:///{layout.tracking_database}", "nothing runs any more"


def test_an_address_shown_holds_no_password_and_a_server_that_is_down_has_no_page(layout: Layout):
    tracker = open_tracker(TrackingSettings(enabled=True, uri="http://me:secret@127.0.0.1:1/mlflow"), layout)
    assert tracker.server == "http://127.0.0.1:1/mlflow"
    assert tracker.page("toy") is None


def test_without_tracking_nothing_is_written(tmp_path: Path, policy: TrackedPolicy):
    tracker = open_tracker(TrackingSettings(enabled=False, uri=None), Layout(tmp_path / "empty", "toy"))
    assert isinstance(tracker, NullTracker)
    record(tracker, SEARCH, policy)
    assert not (tmp_path / "empty").exists()
