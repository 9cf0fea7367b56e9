"""Bad data stops what depends on it, faults that may pass are tried again, and only what changed is out of step."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.definitions.freshness import FreshnessState
from dagster._core.definitions.freshness_evaluator import FRESHNESS_EVALUATORS_BY_POLICY_TYPE
from dagster._core.loader import LoadingContextForTest
from dagster._core.test_utils import freeze_time

from mesa_pipeline.artifacts import Layout, exclusive, read_header, read_records, write_records
from mesa_pipeline.definitions import defs
from mesa_pipeline.defs.resources import Pipeline
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.storage import read_manifest
from mesa_pipeline.structures import STRUCTURES
from tests.defs.test_definitions import materialize
from tests.pipeline import SMALL, copy_of
from tests.stages.nights import SMALL_NIGHT

MEMORIES = [f"{structure.name}_memory" for structure in STRUCTURES.values()]
BY_DATASET = ["raw_trajectories", *MEMORIES, "structure_evidence", "subset_sweep_scores"]
Damage = Callable[[Layout], None]


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    return defs()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def pipeline(finished: StageContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A workspace with everything made, free to be damaged, and the settings that made it."""
    for setting in SMALL:
        name, _, value = setting.partition("=")
        monkeypatch.setenv(f"MESA_{name.replace('.', '__').upper()}", value)
    return Pipeline(workspace=str(copy_of(finished, tmp_path / "workspace").layout.workspace))


@pytest.fixture
def layout(pipeline: Pipeline) -> Layout:
    return Layout(Path(pipeline.workspace), "synthetic")


@pytest.fixture
def run(definitions: dg.Definitions, instance: dg.DagsterInstance, pipeline: Pipeline):
    def run(*names: str, partition: str = "synthetic") -> dg.ExecuteInProcessResult:
        return materialize(definitions, instance, pipeline, list(names), partition, raise_on_error=False)

    return run


def edit(path: Path, change: Callable[[list[dict]], list[dict]]) -> None:
    """Rewrite an artifact's records, its header left as it was."""
    write_records(path, read_header(path), change(list(read_records(path, ""))))


def retries(result: dg.ExecuteInProcessResult) -> int:
    return sum(event.event_type is dg.DagsterEventType.STEP_UP_FOR_RETRY for event in result.all_events)


def failures(result: dg.ExecuteInProcessResult) -> str:
    return " ".join(f"{event.step_failure_data.error_display_string}" for event in result.all_events if event.is_step_failure)


def made(result: dg.ExecuteInProcessResult) -> set[str]:
    return {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}


def repeat_a_question(layout: Layout) -> None:
    def rename(records: list[dict]) -> list[dict]:
        records[0]["questions"][0]["id"] = records[0]["questions"][1]["id"]
        return records

    edit(layout.episode(read_manifest(layout).episodes[0].key), rename)


def cut_an_episode_short(layout: Layout) -> None:
    edit(layout.episode(read_manifest(layout).episodes[0].key), lambda records: records[:-1])


def empty_the_graph(layout: Layout) -> None:
    for entry in read_manifest(layout).episodes:
        edit(layout.evidence("graph", entry.key), lambda records: [{**record, "items": []} for record in records])


@pytest.mark.parametrize(
    ("asset", "downstream", "damage", "check"),
    [
        ("raw_trajectories", "raw_memory", repeat_a_question, "no_repeated_question"),
        ("raw_trajectories", "raw_memory", cut_an_episode_short, "no_partial_episode"),
        ("structure_evidence", "subset_sweep_scores", empty_the_graph, "no_fruitless_structure"),
    ],
)
def test_bad_data_stops_what_depends_on_it(run, layout: Layout, asset: str, downstream: str, damage: Damage, check: str):
    damage(layout)
    result = run(asset, downstream)
    assert check in {found.check_name for found in result.get_asset_check_evaluations() if not found.passed and found.blocking}
    assert made(result) == {asset}
    alone = run(downstream)
    assert made(alone) == set()
    assert f"not started: check {check} of {asset}" in failures(alone)


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"score": 1.5}, "no_impossible_outcome"),
        ({"tokens": -1}, "no_impossible_outcome"),
        ({"score": None, "error": "no verdict"}, "few_unscored"),
    ],
)
def test_a_bad_outcome_table_is_not_searched(run, layout: Layout, change: dict[str, object], check: str):
    for entry in read_manifest(layout).episodes[:1]:
        edit(layout.outcomes(entry.key), lambda records: [{**record, **change} for record in records])
    result = run("subset_sweep_scores")
    assert check in {found.check_name for found in result.get_asset_check_evaluations() if not found.passed and found.blocking}
    search = run("optimized_policy", partition="synthetic|0")
    assert made(search) == set()
    assert f"check {check} of subset_sweep_scores" in failures(search)


def test_what_was_mended_is_worked_on_again(run, layout: Layout):
    path = layout.outcomes(read_manifest(layout).episodes[0].key)
    whole = path.read_bytes()
    edit(path, lambda records: [{**records[0], "score": 2.0}, *records[1:]])
    run("subset_sweep_scores")
    path.write_bytes(whole)
    assert run("subset_sweep_scores").success
    assert made(run("optimized_policy", partition="synthetic|0")) == {"optimized_policy"}


def test_a_step_waits_until_a_busy_workspace_is_free(run, layout: Layout, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MESA_RUN__RETRIES__BUSY_SECONDS", "0.05")
    held, seen = threading.Event(), threading.Event()

    def hold() -> None:
        with exclusive(layout):
            held.set()
            seen.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    threading.Timer(1.0, seen.set).start()
    result = run("raw_memory")
    holder.join()
    assert retries(result) >= 1
    assert made(result) == {"raw_memory"}


def test_a_server_that_does_not_answer_is_asked_again_and_then_named(run, monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        for name, value in {
            "LLM__EMBEDDER": "endpoint",
            "LLM__EMBEDDINGS__BASE_URL": url,
            "LLM__EMBEDDINGS__MAX_ATTEMPTS": "1",
            "RUN__RETRIES__LIMIT": "2",
            "RUN__RETRIES__BACKOFF_SECONDS": "0.01",
        }.items():
            monkeypatch.setenv(f"MESA_{name}", value)
        result = run("vector_memory")
    assert not result.success
    assert retries(result) == 2
    assert "cannot be reached" in failures(result)


def test_what_will_not_pass_is_not_tried_again(run):
    result = run("raw_trajectories", partition="locomo")
    assert not result.success
    assert retries(result) == 0


def test_only_what_depends_on_a_change_is_out_of_step(
    definitions: dg.Definitions, instance: dg.DagsterInstance, run, monkeypatch: pytest.MonkeyPatch
):
    def versions() -> dict[str, str]:
        records = {name: instance.get_latest_materialization_event(dg.AssetKey(name)) for name in BY_DATASET}
        return {name: record.asset_materialization.tags["dagster/data_version"] for name, record in records.items() if record}

    def out_of_step() -> set[str]:
        graph = definitions.resolve_asset_graph()
        resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        states = {name: resolver.get_status(dg.AssetKey(name), "synthetic") for name in BY_DATASET}
        return {name for name, state in states.items() if state is not StaleStatus.FRESH}

    assert run(*BY_DATASET).success
    first = versions()
    assert run("raw_trajectories", *MEMORIES, "structure_evidence").success
    assert versions() == first
    assert out_of_step() == set()

    monkeypatch.setenv("MESA_STRUCTURES__RAW__TOP_K", "1")
    assert run(*MEMORIES, "structure_evidence").success
    assert {name for name, version in versions().items() if version != first[name]} == {"structure_evidence"}
    assert out_of_step() == {"subset_sweep_scores"}

    monkeypatch.delenv("MESA_STRUCTURES__RAW__TOP_K")
    assert run("structure_evidence").success
    assert versions() == first
    assert out_of_step() == set()

    monkeypatch.setenv("MESA_STRUCTURES__RAW__MAX_WINDOW", "4")
    monkeypatch.setenv("MESA_STRUCTURES__RAW__MIN_WINDOW", "4")
    assert run(*MEMORIES).success
    assert {name for name, version in versions().items() if version != first[name]} == {"raw_memory"}
    assert out_of_step() == {"structure_evidence"}


def test_a_champion_that_got_worse_fails_its_check_and_is_reported(run, layout: Layout, monkeypatch: pytest.MonkeyPatch):
    for setting in SMALL_NIGHT[len(SMALL) :]:
        name, _, value = setting.partition("=")
        monkeypatch.setenv(f"MESA_{name.replace('.', '__').upper()}", value)

    def checked() -> dg.AssetCheckEvaluation:
        result = run("challenger_policy", "champion_policy")
        assert made(result) == {"challenger_policy", "champion_policy"}
        return next(found for found in result.get_asset_check_evaluations() if found.check_name == "champion_not_worse")

    assert checked().passed
    for entry in read_manifest(layout).episodes:
        edit(layout.outcomes(entry.key), lambda records: [{**record, "score": record["score"] / 10} for record in records])
    failed = checked()
    assert (failed.passed, failed.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "significantly worse than when it was crowned" in str(failed.description)
    assert "significantly worse" in Path(str(failed.metadata["report"].value)).read_text()


@pytest.mark.parametrize("asset", ["comparison_report", "champion_policy"])
def test_what_is_read_each_morning_is_overdue_after_the_hours_of_the_settings(
    definitions: dg.Definitions, instance: dg.DagsterInstance, asset: str
):
    """As Dagster's daemon judges it, which has that switched on without being told."""
    node = definitions.resolve_asset_graph().get(dg.AssetKey(asset))
    made = datetime(2030, 1, 1, 3, tzinfo=UTC)

    def judged(hours: float) -> FreshnessState:
        with freeze_time(made + timedelta(hours=hours)):
            evaluator = FRESHNESS_EVALUATORS_BY_POLICY_TYPE[type(node.freshness_policy)]()
            return asyncio.run(evaluator.evaluate_freshness(LoadingContextForTest(instance), node))

    assert instance.freshness_enabled
    assert judged(0) is FreshnessState.UNKNOWN
    with freeze_time(made):
        instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition="synthetic"))
    assert (judged(35.9), judged(36.1)) == (FreshnessState.PASS, FreshnessState.FAIL)
