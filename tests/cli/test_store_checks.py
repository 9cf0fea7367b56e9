"""What ``mesa doctor`` says of the servers that memories are searched in; Elasticsearch is an emulator here."""

import re
import uuid
from pathlib import Path

import pytest

from mesa_pipeline.cli.store_checks import store_checks
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.services.postgres import EmbeddedPostgres
from tests.conftest import REPOSITORY


def said(workspace: Path, *overrides: str, name: str = "Elasticsearch") -> str:
    settings = load_settings(REPOSITORY / "params.yaml", overrides, {})
    return store_checks(settings, workspace)[name]()


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


def test_postgresql_says_its_version_and_what_it_holds(
    tmp_path: Path, postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "not used" in said(tmp_path, name="vector store")
    postgres.ensure_database("doctor")
    monkeypatch.setenv("MESA_POSTGRES_URL", postgres.url("doctor"))
    line = said(tmp_path, "stores.vectors=pgvector", name="vector store")
    assert re.fullmatch(r"18\.\S+.* with pgvector 0\.\S+; holds 0 memories of namespace 'default'", line)


def test_a_postgresql_that_is_not_there_is_an_error_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESA_POSTGRES_URL", "postgresql://me:secret@127.0.0.1:9/mesa")
    with pytest.raises(MissingDependency, match=r"set stores\.vectors to files") as raised:
        said(tmp_path, "stores.vectors=pgvector", name="vector store")
    assert "secret" not in str(raised.value)
