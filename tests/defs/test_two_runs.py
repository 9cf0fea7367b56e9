"""Two runs of the same partition at once, each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import load_settings
from mesa_pipeline.stages import inspection
from mesa_pipeline.stages.context import StageContext
from tests.conftest import REPOSITORY
from tests.pipeline import SMALL

RUN = """
import json, sys
import dagster as dg
from mesa_pipeline.definitions import defs
from mesa_pipeline.defs.resources import Pipeline

definitions = defs()
job = definitions.resolve_implicit_global_asset_job_def()
names = ["raw_trajectories", "summary_memory", "temporal_memory", "graph_memory", "vector_memory", "raw_memory"]
names += ["structure_evidence", "subset_sweep_scores"]
job = job.get_subset(asset_selection={dg.AssetKey(name) for name in names})
print("ready", flush=True)
sys.stdin.readline()
with dg.DagsterInstance.ephemeral() as instance:
    resources = {"pipeline": Pipeline(workspace=sys.argv[1])}
    result = job.execute_in_process(partition_key="synthetic", instance=instance, resources=resources, raise_on_error=False)
waits = sum(event.event_type_value == "STEP_UP_FOR_RETRY" for event in result.all_events)
made = {e.asset_key.to_user_string(): e.materialization.metadata["made"].value
        for e in result.get_asset_materialization_events() if "made" in e.materialization.metadata}
failed = [event.step_failure_data.error.to_string() for event in result.all_events if event.is_step_failure]
print(json.dumps({"failed": failed, "waits": waits, "made": made}))
"""


@pytest.mark.system
@pytest.mark.timeout(600)
def test_two_runs_of_one_partition_lose_nothing_and_do_nothing_twice(tmp_path: Path):
    overrides = [*SMALL, "datasets.synthetic.episodes=4", "datasets.synthetic.questions=2"]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MESA_")}
    settings = {f"MESA_{name.replace('.', '__').upper()}": value for name, _, value in (o.partition("=") for o in overrides)}
    environment = {**inherited, **settings, "MESA_RUN__RETRIES__BUSY_SECONDS": "0.2"}
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    runs = [
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        for run in runs:
            assert run.stdout is not None
            assert run.stdout.readline() == "ready\n"
        for run in runs:
            assert run.stdin is not None
            run.stdin.write("\n")
            run.stdin.flush()
        ended = [json.loads(run.communicate(timeout=500)[0].splitlines()[-1]) for run in runs]
    finally:
        for run in runs:
            run.kill()
            run.wait()

    assert [run["failed"] for run in ended] == [[], []]
    assert sum(run["waits"] for run in ended) >= 1
    context = StageContext(Layout(tmp_path, "synthetic"), load_settings(REPOSITORY / "params.yaml", overrides, {}))
    assert inspection.incomplete_questions(context) == []
    assert sum(run["made"]["subset_sweep_scores"] for run in ended) == 4 * 2 * 31
    assert not list(tmp_path.rglob("*.partial"))
    assert not list(tmp_path.rglob("*.tmp"))
