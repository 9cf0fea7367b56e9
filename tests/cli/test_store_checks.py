"""What ``mesa doctor`` says of Elasticsearch, an emulator here."""

import uuid
from pathlib import Path

import pytest

from mesa_pipeline.cli.store_checks import store_checks
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import MissingDependency
from tests.conftest import REPOSITORY


def said(workspace: Path, *overrides: str) -> str:
    settings = load_settings(REPOSITORY / "params.yaml", overrides, {})
    return store_checks(settings, workspace)["Elasticsearch"]()


def test_elasticsearch_is_not_asked_where_it_is_not_used(tmp_path: Path) -> None:
    assert "not used" in said(tmp_path, "stores.elasticsearch.url=http://127.0.0.1:9")


def test_the_server_says_its_version(tmp_path: Path, elasticsearch_emulator: str) -> None:
    index = f"mesa-test-{uuid.uuid4().hex}"
    server = f"stores.elasticsearch.url={elasticsearch_emulator}", f"stores.elasticsearch.index={index}"
    line = said(tmp_path, "stores.texts=elasticsearch", *server)
    assert line == f"8.15.3 at {elasticsearch_emulator}; index {index} is made by the first build"


def test_a_server_that_is_not_there_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    server = "stores.elasticsearch.url=http://127.0.0.1:9", "stores.elasticsearch.max_attempts=1"
    with pytest.raises(MissingDependency, match="cannot be reached"):
        said(tmp_path, "stores.texts=elasticsearch", *server)
