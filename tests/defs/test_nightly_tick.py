"""A tick really fires: the daemon alone, on an instance of its own, takes up a new episode and makes nothing else."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import dagster as dg
import pytest

from mesa_pipeline.artifacts import write_json
from mesa_pipeline.config.settings import validated
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.structures import STRUCTURES
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


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_tick_takes_up_a_new_episode_and_the_next_makes_nothing(finished: StageContext, tmp_path: Path):
    context = copy_of(finished, tmp_path / "workspace")
    night(context)
    overrides = ("datasets.synthetic.episodes=11", EVERY_MINUTE, "nightly.automatic=true")
    settings = validated(context.settings.model_dump(mode="json", by_alias=True), overrides, "the test")
    environment = prepare_home(tmp_path / "home", context, settings.model_dump(mode="json", by_alias=True))
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        for asset in CHAIN:
            instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=DATASET))
        with daemon(environment, tmp_path / "daemon.log"):
            first = wait_for(lambda: finished_run(instance, 1), tmp_path / "daemon.log")
            assert first.status is dg.DagsterRunStatus.SUCCESS
            made = {asset: counts(instance, first.run_id, asset) for asset in CHAIN if asset != "structure_evidence"}
            second = wait_for(lambda: finished_run(instance, 2), tmp_path / "daemon.log")
    assert made["raw_trajectories"] == (1, 10)
    assert {made[f"{structure.name}_memory"] for structure in STRUCTURES.values()} == {(1, 10)}
    assert made["subset_sweep_scores"] == (QUESTIONS * 31, 10 * QUESTIONS * 31)
    assert made["champion_policy"] == (1, 0)
    assert second.status is dg.DagsterRunStatus.SUCCESS


def prepare_home(home: Path, context: StageContext, settings: Mapping[str, object]) -> dict[str, str]:
    """An instance's folder, and the environment of its processes."""
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
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


def finished_run(instance: dg.DagsterInstance, number: int) -> dg.DagsterRun | None:
    runs = sorted(instance.get_run_records(), key=lambda record: record.storage_id)
    done = [record.dagster_run for record in runs if record.dagster_run.is_finished]
    return done[number - 1] if len(done) >= number else None


def counts(instance: dg.DagsterInstance, run_id: str, asset: str) -> tuple[object, object]:
    """What a run made and kept of an asset."""
    event = instance.get_latest_materialization_event(dg.AssetKey(asset))
    assert event is not None and event.asset_materialization is not None and event.run_id == run_id
    metadata = event.asset_materialization.metadata
    return metadata["made"].value, metadata["kept"].value
