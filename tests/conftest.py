"""Fixtures every test may use."""

import os
from pathlib import Path

import pytest

from mesa_pipeline.config import Settings, load_settings

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def settings() -> Settings:
    """The defaults of params.yaml, whatever the environment says."""
    return load_settings(REPOSITORY / "params.yaml", environment={})


@pytest.fixture(scope="session")
def dev_data() -> Path:
    """The development data, which is not part of the repository."""
    path = Path(os.environ.get("MESA_DEV_DATA", REPOSITORY.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"development data not found at {path}; set MESA_DEV_DATA to its folder")
    return path
