"""One MLflow database for all tests of the tracker: creating its tables takes seconds."""

from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import TrackingSettings
from mesa_pipeline.tracking import TrackedPolicy, Tracker, open_tracker


@pytest.fixture(scope="session")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return Layout(tmp_path_factory.mktemp("workspace"), "toy")


@pytest.fixture(scope="session")
def tracker(layout: Layout) -> Tracker:
    return open_tracker(TrackingSettings(enabled=True, uri=None), layout, tags={"dagster.run_id": "r1"})


@pytest.fixture
def client(layout: Layout):
    from mlflow import MlflowClient

    uri = f"sqlite:///{layout.tracking_database}"
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


@pytest.fixture
def policy(tmp_path: Path) -> TrackedPolicy:
    (tmp_path / "policy.json").write_text('{"subset": 3}')
    return TrackedPolicy(tmp_path, {"J": 0.35}, {"mesa.profile": "offline"}, "reads S and T")
