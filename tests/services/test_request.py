"""What is asked for arrives at the owner as it was meant."""

import stat
from pathlib import Path

import pytest

from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.services.request import ServicesRequest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("profile", ["offline", "local-llm", "paper"])
def test_a_request_is_read_as_it_was_written(tmp_path: Path, profile: str, monkeypatch: pytest.MonkeyPatch):
    """Above all its settings: neither the profile nor the environment changes them a second time."""
    settings = load_settings(
        REPOSITORY / "params.yaml",
        ["reading.reader=extractive", "llm.roles.answer.max_tokens=77", "structures.raw.top_k=9"],
        {},
        profile,
    )
    request = ServicesRequest(tmp_path, settings, {"locomo": tmp_path / "rows.json"}, with_mlflow=False, bound=True)
    request.write()
    monkeypatch.setenv("MESA_STRUCTURES__RAW__TOP_K", "1")
    assert ServicesRequest.read(tmp_path) == request
    assert load_settings(request.params_file) == settings


def test_the_settings_are_readable_for_this_user_alone(tmp_path: Path):
    """The address of a server in them may hold a password."""
    settings = load_settings(REPOSITORY / "params.yaml", ["stores.elasticsearch.url=https://me:secret@search:9200"], {})
    request = ServicesRequest(tmp_path, settings)
    request.write()
    assert stat.S_IMODE(request.params_file.stat().st_mode) == 0o600


def test_there_is_none_in_a_new_workspace(tmp_path: Path):
    with pytest.raises(ArtifactError, match="mesa up"):
        ServicesRequest.read(tmp_path)
