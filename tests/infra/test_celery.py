"""Steps of several runs over two Celery workers, one of which is killed; a real Redis, PostgreSQL and Celery.

What was made is counted from what the builds note, not from Dagster's events: a step that was given out twice reports twice.
"""

import json
import shutil
from collections import Counter
from pathlib import Path

import dagster as dg
import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import load_settings
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.subsets import STRUCTURE_NAMES
from tests.infra.celery_cluster import PASSWORD, REPOSITORY, Cluster, cluster, own_data, settings_of, wait_until

PARTITIONS = tuple(f"traces.part{number}" for number in range(3))
CODES = "SR"
"""Structures that need no model."""
ASSETS = ("raw_trajectories", *(f"{STRUCTURE_NAMES[code]}_memory" for code in CODES))
EPISODES, STEPS = 8, 500
VISIBILITY_SECONDS = 10

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        shutil.which("redis-server") is None, reason="redis-server is not installed (apt-get install redis-server)"
    ),
]


def test_a_killed_worker_loses_nothing_and_nothing_is_made_twice(tmp_path: Path):
    sources = {name: own_data(tmp_path / "data", name, EPISODES, STEPS) for name in PARTITIONS}
    with cluster(tmp_path, {**settings_of(sources), "MESA_CELERY_VISIBILITY_SECONDS": str(VISIBILITY_SECONDS)}) as celery:
        celery.start_worker("first")
        celery.start_worker("second")
        wait_until(lambda: all("ready." in celery.log(name) for name in celery.workers), 240, "both workers are ready")
        coordinator = celery.materialise(PARTITIONS, ASSETS)
        wait_until(lambda: any(celery.holds_a_part("first", name) for name in PARTITIONS), 240, "the first worker builds")
        celery.kill_worker("first")
        assert celery.outcome(coordinator, 400) == dict.fromkeys(PARTITIONS, True)
        wait_until(lambda: not celery.queue.hlen("unacked"), 120, "the last step is acknowledged")
        assert celery.outcome(celery.materialise(PARTITIONS[:1], ASSETS), 400) == {PARTITIONS[0]: True}
        materialisations = events(celery)
        assert not any(PASSWORD in celery.log(process) for process in ("first", "second", "coordinator"))
    for name in PARTITIONS:
        assert made(Layout(celery.workspace, name)) == {(code, f"{name}-{k}"): 1 for code in CODES for k in range(EPISODES)}
        assert contents(celery.workspace / name) == contents(built_here(tmp_path / "alone", name, sources[name]))
    assert set(materialisations) == {(asset, name) for asset in ASSETS for name in PARTITIONS}


def made(layout: Layout) -> Counter[tuple[str, str]]:
    """How often each memory was made, from what the builds noted after each."""
    keys = {entry["key"]: entry["id"] for entry in json.loads(layout.manifest.read_text())["episodes"]}
    lines = [(code, line) for code in CODES for line in layout.timings(f"build-{code}").read_text().splitlines()]
    return Counter((code, keys[json.loads(line)["key"]]) for code, line in lines)


def contents(root: Path) -> dict[str, bytes]:
    """Every artifact, byte for byte; timings and locks are none."""
    found = (path.relative_to(root) for kind in ("episodes", "memories") for path in sorted((root / kind).rglob("*")))
    return {str(path): (root / path).read_bytes() for path in found if (root / path).is_file()}


def built_here(workspace: Path, name: str, source: Path) -> Path:
    """The same data built by this process, with no Celery near."""
    settings = load_settings(REPOSITORY / "params.yaml", ["run.workers=1"], {})
    context = StageContext(Layout(workspace, name), settings, source)
    ingest(context)
    for code in CODES:
        build(context, code)
    return context.layout.root


def events(celery: Cluster) -> Counter[tuple[str, str]]:
    """How often each partition of each asset was reported as materialised."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in celery.environment.items():
            patch.setenv(name, value)
        with dg.DagsterInstance.get() as instance:
            found = {asset: instance.fetch_materializations(dg.AssetKey(asset), limit=1000).records for asset in ASSETS}
    return Counter((asset, str(record.partition_key)) for asset, records in found.items() for record in records)
