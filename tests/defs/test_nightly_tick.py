"""A tick really fires: the daemon alone, on an instance of its own, takes up a new episode and makes nothing else."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import dagster as dg
import pytest

from mesa_pipeline.artifacts import write_json
from mesa_pipeline.config.settings import validated
from mesa_pipeline.definitions import defs
from mesa_pipeline.defs.resources import Pipeline
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.structures import STRUCTURES
from tests.defs.test_definitions import materialize
from tests.pipeline import copy_of
from tests.stages.nights import night

DATASET = "synthetic"
CHAIN = (
    "raw_trajectories",
    *(f"{structure.name}_memory" for structure in STRUCTURES.values()),
    "structure_evidence",
    "subset_sweep_scores",
    "challenger_policy",
    "champion_policy",
)
QUESTIONS = 4
EVERY_MINUTE = "nightly.cron='* * * * *'"
DEADLINE_SECONDS = 280.0


@pytest.mark.system
@pytest.mark.timeout(900)
def test_a_tick_takes_up_a_new_episode_and_another_run_makes_nothing(
    finished: StageContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    context = copy_of(finished, tmp_path / "workspace")
    night(context)
    overrides = ("datasets.synthetic.episodes=11", EVERY_MINUTE, "nightly.automatic=true")
    settings = validated(context.settings.model_dump(mode="json", by_alias=True), overrides, "the test")
    environment = prepare_home(tmp_path / "home", context, settings.model_dump(mode="json", by_alias=True))
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        for asset in CHAIN:
            instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=DATASET))
        with daemon(environment, tmp_path / "daemon.log"):
            run = wait_for(lambda: finished_run(instance), tmp_path / "daemon.log")
        assert run.status is dg.DagsterRunStatus.SUCCESS
        assert run.tags["dagster/from_automation_condition"] == "true"
        made = counts(materializations(instance, run.run_id))
        assert made["raw_trajectories"] == (1, 10)
        assert {made[f"{structure.name}_memory"] for structure in STRUCTURES.values()} == {(1, 10)}
        assert made["subset_sweep_scores"] == (QUESTIONS * 31, 10 * QUESTIONS * 31)
        assert made["champion_policy"] == (1, 0)

        monkeypatch.setenv("MESA_PARAMS", environment["MESA_PARAMS"])
        pipeline = Pipeline(workspace=environment["MESA_WORKSPACE"])
        again = materialize(defs(), instance, pipeline, list(CHAIN), DATASET)
        assert again.success
        made_again = counts(event.materialization for event in again.get_asset_materialization_events())
        assert {made for made, _ in made_again.values()} == {0}


def prepare_home(home: Path, context: StageContext, settings: Mapping[str, object]) -> dict[str, str]:
    """An instance's folder, and the environment of its processes."""
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\nconcurrency: {runs: {max_concurrent_runs: 1}}\n")
    write_json(home / "params.json", settings)
    return {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "MESA_WORKSPACE": str(context.layout.workspace),
        "MESA_PARAMS": str(home / "params.json"),
    }


@contextmanager
def daemon(environment: Mapping[str, str], log: Path) -> Iterator[None]:
    """Dagster's daemon with its code location, in a process group that is gone afterwards."""
    program = Path(sys.executable).parent / "dagster-daemon"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [program, "run", "-m", "mesa_pipeline.definitions"],
            env=environment,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(found: Callable[[], dg.DagsterRun | None], log: Path) -> dg.DagsterRun:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        run = found()
        if run is not None:
            return run
        time.sleep(0.5)
    raise AssertionError(f"nothing happened; the daemon said: {log.read_text()[-3000:]}")


def finished_run(instance: dg.DagsterInstance) -> dg.DagsterRun | None:
    return next((record.dagster_run for record in instance.get_run_records() if record.dagster_run.is_finished), None)


def materializations(instance: dg.DagsterInstance, run_id: str) -> list[dg.AssetMaterialization]:
    logged = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    events = [entry.dagster_event for entry in logged if entry.dagster_event]
    return [event.step_materialization_data.materialization for event in events]


def counts(found: Iterable[dg.AssetMaterialization]) -> dict[str, tuple[object, object]]:
    """What was made and kept of each asset, where it counts that."""
    return {
        materialization.asset_key.to_user_string(): (
            materialization.metadata["made"].value,
            materialization.metadata["kept"].value,
        )
        for materialization in found
        if "made" in materialization.metadata
    }
