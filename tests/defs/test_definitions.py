"""The asset graph: what is in it, how its partitions depend on one another, and that it materialises."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import pytest

from mesa_pipeline.artifacts import read_header, read_records, write_records
from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.config import load_settings
from mesa_pipeline.datasets.splits import PARTS
from mesa_pipeline.definitions import defs
from mesa_pipeline.defs.baselines import baseline_asset
from mesa_pipeline.defs.partitions import BY_DATASET, BY_DATASET_AND_SEED
from mesa_pipeline.defs.resources import Pipeline
from mesa_pipeline.structures import STRUCTURES

GROUPS = {
    "data": {"raw_trajectories", "split_partitions"},
    "structures": {f"{structure.name}_memory" for structure in STRUCTURES.values()} | {"structure_evidence"},
    "evaluation": {"subset_sweep_scores"},
    "search": {"optimized_policy", "policy_ablations"},
    "champion": {"challenger_policy", "champion_policy"},
    "reports": {"test_report", "comparison_report"},
    "baselines": {"long_context_answers", "bm25_answers", "flat_dense_answers", "baseline_report"},
}
BY_SEED = {"split_partitions", "optimized_policy", "policy_ablations", "test_report"}
IN_ORDER = (
    ["raw_trajectories", *sorted(GROUPS["structures"] - {"structure_evidence"}), "structure_evidence", "subset_sweep_scores"],
    ["split_partitions", "optimized_policy", "test_report"],
    ["challenger_policy", "champion_policy", "comparison_report", "bm25_answers"],
)
TINY = {
    "MESA_DATASETS__SYNTHETIC__EPISODES": "10",
    "MESA_DATASETS__SYNTHETIC__STEPS": "12",
    "MESA_DATASETS__SYNTHETIC__QUESTIONS": "4",
    "MESA_EVALUATION__BOOTSTRAP_SAMPLES": "50",
    "MESA_SEARCH__ITERATIONS": "1",
    "MESA_TRACKING__ENABLED": "false",
    "MESA_RUN__WORKERS": "1",
}
HEAVY = ("torch", "mlflow", "matplotlib", "sentence_transformers")


class Materialized(NamedTuple):
    """A job that has ended, with the assets it was asked for."""

    names: list[str]
    result: dg.ExecuteInProcessResult


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    return defs()


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture(scope="module")
def tiny() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in TINY.items():
            environment.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def pipeline(tiny: None, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    return Pipeline(workspace=str(tmp_path_factory.mktemp("workspace")))


def materialize(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    pipeline: Pipeline,
    names: list[str],
    partition: str,
    **options: bool,
) -> dg.ExecuteInProcessResult:
    job = definitions.resolve_implicit_global_asset_job_def()
    keys = {dg.AssetKey(name) for name in names}
    checks = {key for key in job.asset_layer.asset_graph.asset_check_keys if key.asset_key in keys}
    subset = job.get_subset(asset_selection=keys, asset_check_selection=checks)
    return subset.execute_in_process(partition_key=partition, instance=instance, resources={"pipeline": pipeline}, **options)


@pytest.fixture(scope="module")
def materialized(definitions: dg.Definitions, instance: dg.DagsterInstance, pipeline: Pipeline) -> list[Materialized]:
    """The whole graph, a job for each partition in turn."""
    done = []
    for names, partitions in zip(
        IN_ORDER, (["synthetic"], [f"synthetic|{seed}" for seed in range(5)], ["synthetic"]), strict=True
    ):
        done += [
            Materialized(names, materialize(definitions, instance, pipeline, names, partition)) for partition in partitions
        ]
    return done


def test_the_assets_are_those_of_the_system_grouped_by_stage(definitions: dg.Definitions):
    graph = definitions.resolve_asset_graph()
    groups: dict[str, set[str]] = {}
    for key in graph.get_all_asset_keys():
        groups.setdefault(graph.get(key).group_name, set()).add(key.to_user_string())
    assert groups == GROUPS


def test_assets_are_partitioned_by_dataset_or_by_dataset_and_seed(definitions: dg.Definitions):
    graph = definitions.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        expected = BY_DATASET_AND_SEED if key.to_user_string() in BY_SEED else BY_DATASET
        assert graph.get(key).partitions_def == expected


@pytest.mark.parametrize(
    ("child", "parent", "partition", "parents"),
    [
        ("split_partitions", "raw_trajectories", "synthetic|3", {"synthetic"}),
        ("optimized_policy", "subset_sweep_scores", "locomo|0", {"locomo"}),
        ("optimized_policy", "split_partitions", "locomo|0", {"locomo|0"}),
        ("comparison_report", "test_report", "synthetic", {f"synthetic|{seed}" for seed in range(5)}),
    ],
)
def test_partitions_depend_on_those_of_the_same_dataset_and_seed(
    definitions: dg.Definitions, child: str, parent: str, partition: str, parents: set[str]
):
    graph = definitions.resolve_asset_graph()
    mapping = graph.get_partition_mapping(dg.AssetKey(child), dg.AssetKey(parent))
    downstream, upstream = graph.get(dg.AssetKey(child)).partitions_def, graph.get(dg.AssetKey(parent)).partitions_def
    assert downstream is not None and upstream is not None
    wanted = downstream.subset_with_partition_keys([partition])
    found = mapping.get_upstream_mapped_partitions_result_for_partitions(wanted, downstream, upstream)
    assert set(found.partitions_subset.get_partition_keys()) == parents


def test_loading_the_definitions_imports_nothing_heavy():
    script = f"import sys, mesa_pipeline.definitions as d; d.defs(); print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_whole_graph_materialises_with_nothing_prepared(materialized: Sequence[Materialized], instance: dg.DagsterInstance):
    for names, result in materialized:
        assert result.success
        assert {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()} == set(names)
        evaluations = result.get_asset_check_evaluations()
        assert [check.check_name for check in evaluations if not check.passed and check.blocking] == []

    shown = metadata_of(instance, "subset_sweep_scores")
    assert shown["made"].value == 10 * 4 * 31
    assert str(shown["plot_cost"].value).startswith("![")
    assert str(shown["table_subsets"].value).count("\n| ") >= 31
    assert str(metadata_of(instance, "split_partitions")["table_parts"].value).count("\n| ") == 1 + len(PARTS)
    assert Path(str(metadata_of(instance, "comparison_report")["page"].value)).is_file()
    assert metadata_of(instance, "champion_policy")["decision"].value == "first"
    assert Path(str(metadata_of(instance, "champion_policy")["report"].value)).is_file()
    assert str(metadata_of(instance, "champion_policy")["plot_champion"].value).startswith("![")


@pytest.mark.usefixtures("materialized")
def test_systems_are_compared_with_what_they_cost(
    definitions: dg.Definitions, instance: dg.DagsterInstance, pipeline: Pipeline
):
    assert materialize(definitions, instance, pipeline, ["baseline_report"], "synthetic").success
    shown = metadata_of(instance, "baseline_report")
    assert Path(str(shown["page"].value)).is_file()
    assert "BM25" in str(shown["table-1-capabilities"].value)
    assert str(shown["plot_figure-4-domains"].value).startswith("![")
    asked = metadata_of(instance, "bm25_answers")
    assert asked["made"].value == 10 * 4
    assert 0 < float(str(asked["score"].value)) <= 1
    assert "build, a trajectory" in str(asked["table_cost"].value)


@pytest.mark.usefixtures("materialized")
def test_a_wrapped_system_without_its_environment_names_the_command_that_makes_it(
    definitions: dg.Definitions, instance: dg.DagsterInstance, pipeline: Pipeline
):
    assets, resources = [baseline_asset(BASELINES["mem0"])], {"pipeline": pipeline}
    result = dg.materialize(assets, partition_key="synthetic", instance=instance, resources=resources, raise_on_error=False)
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert "mesa baselines install mem0" in str(failure.step_failure_data)


@pytest.mark.usefixtures("materialized")
def test_every_ablation_materialises_beside_its_search(
    definitions: dg.Definitions, instance: dg.DagsterInstance, pipeline: Pipeline
):
    result = materialize(definitions, instance, pipeline, ["policy_ablations"], "synthetic|0")
    (event,) = result.get_asset_materialization_events()
    rows = event.materialization.metadata["table_ablations"]
    assert isinstance(rows, dg.MarkdownMetadataValue)
    for ablation in load_settings(environment={}).ablations:
        assert rows.value is not None
        assert f"| {ablation.name}, seed 0 |" in rows.value


@pytest.mark.usefixtures("materialized")
def test_materialising_again_does_no_work(definitions: dg.Definitions, instance: dg.DagsterInstance, pipeline: Pipeline):
    assert materialize(definitions, instance, pipeline, ["subset_sweep_scores"], "synthetic").success
    shown = metadata_of(instance, "subset_sweep_scores")
    assert shown["made"].value == 0
    assert shown["kept"].value == 10 * 4 * 31


@pytest.mark.usefixtures("materialized")
def test_an_outcome_lost_from_the_table_fails_the_check_and_stops_what_depends_on_it(
    definitions: dg.Definitions, instance: dg.DagsterInstance, pipeline: Pipeline
):
    outcomes = next((Path(pipeline.workspace) / "synthetic" / "outcomes").glob("*.jsonl"))
    whole = outcomes.read_bytes()
    write_records(outcomes, read_header(outcomes), list(read_records(outcomes, "mesa sweep"))[:-1])
    try:
        result = materialize(definitions, instance, pipeline, ["subset_sweep_scores"], "synthetic", raise_on_error=False)
    finally:
        outcomes.write_bytes(whole)
    (evaluation,) = [e for e in result.get_asset_check_evaluations() if e.check_name == "all_subsets_present"]
    assert (evaluation.passed, evaluation.blocking) == (False, True)
    assert "30 of 31 subsets" in str(evaluation.metadata["found"].value)


def test_a_dataset_without_its_data_fails_with_the_remedy(definitions: dg.Definitions, pipeline: Pipeline):
    with dg.DagsterInstance.ephemeral() as instance:
        result = materialize(definitions, instance, pipeline, ["raw_trajectories"], "locomo", raise_on_error=False)
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert "MESA_DATA_LOCOMO" in str(failure.step_failure_data.user_failure_data.description)


def test_at_night_only_what_was_materialised_once_is_brought_up_to_date(definitions: dg.Definitions):
    with dg.DagsterInstance.ephemeral() as instance:
        evening = datetime(2030, 1, 1, 22, 0)
        first = dg.evaluate_automation_conditions(definitions, instance, evaluation_time=evening)
        assert first.total_requested == 0

        for key, partition in [("raw_trajectories", "synthetic"), ("raw_memory", "synthetic")]:
            instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=partition))
        before = dg.evaluate_automation_conditions(
            definitions, instance, evaluation_time=evening + timedelta(minutes=1), cursor=first.cursor
        )
        assert before.total_requested == 0

        night = dg.evaluate_automation_conditions(
            definitions, instance, evaluation_time=evening + timedelta(hours=6), cursor=before.cursor
        )
        assert requested(night) == {"raw_trajectories": {"synthetic"}, "raw_memory": {"synthetic"}}


def test_at_night_the_comparison_waits_for_the_systems_that_were_run_alone(definitions: dg.Definitions):
    made = ["raw_trajectories", "bm25_answers", "baseline_report"]
    with dg.DagsterInstance.ephemeral() as instance:
        evening = datetime(2030, 1, 1, 22, 0)
        first = dg.evaluate_automation_conditions(definitions, instance, evaluation_time=evening)
        for key in made:
            instance.report_runless_asset_event(dg.AssetMaterialization(key, partition="synthetic"))
        before = dg.evaluate_automation_conditions(
            definitions, instance, evaluation_time=evening + timedelta(minutes=1), cursor=first.cursor
        )
        night = dg.evaluate_automation_conditions(
            definitions, instance, evaluation_time=evening + timedelta(hours=6), cursor=before.cursor
        )
    asked = {key: set(night.get_requested_partitions(dg.AssetKey(key))) for key in [*made, "flat_dense_answers"]}
    assert before.total_requested == 0
    assert asked == {**{key: {"synthetic"} for key in made}, "flat_dense_answers": set()}


def requested(result: dg.EvaluateAutomationConditionsResult) -> Mapping[str, set[str]]:
    keys = ["raw_trajectories", "raw_memory", "graph_memory", "comparison_report", "test_report"]
    found = {key: set(result.get_requested_partitions(dg.AssetKey(key))) for key in keys}
    return {key: {str(partition) for partition in partitions} for key, partitions in found.items() if partitions}


def metadata_of(instance: dg.DagsterInstance, name: str) -> Mapping[str, dg.MetadataValue]:
    event = instance.get_latest_materialization_event(dg.AssetKey(name))
    assert event is not None and event.asset_materialization is not None
    return event.asset_materialization.metadata
