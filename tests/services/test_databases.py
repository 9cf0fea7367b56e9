"""A team's server in place of the embedded one, by settings alone."""

from collections.abc import Iterator

import psycopg
import pytest

from mesa_pipeline.artifacts.services import ORCHESTRATION, STORES, TRACKING
from mesa_pipeline.config import ServicesSettings, Settings
from mesa_pipeline.errors import ConfigError, MissingDependency
from mesa_pipeline.services.databases import sizes, team_databases
from mesa_pipeline.services.postgres import EmbeddedPostgres, unavailable

PASSWORD = "dummy-0x5ec4e7"
needs_postgres = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))


@pytest.fixture
def team(settings: Settings) -> ServicesSettings:
    return settings.services.model_copy(update={"postgres": "url", "dagster_database": "team_dagster"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(tmp_path_factory.mktemp("team") / "postgres") as server:
        server.ensure_database("ours")
        yield server


def with_password(address: str) -> str:
    return address.replace("://mesa@", f"://mesa:{PASSWORD}@")


@needs_postgres
@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg2"])
def test_databases_lie_beside_the_one_named_and_are_created(
    team: ServicesSettings, server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch, scheme: str
):
    monkeypatch.setenv("MESA_POSTGRES_URL", with_password(server.url("ours", scheme)))
    databases = team_databases(team)
    assert databases == {
        ORCHESTRATION: with_password(server.url("team_dagster")),
        TRACKING: with_password(server.url("mlflow")),
        STORES: with_password(server.url("ours")),
    }
    assert team_databases(team) == databases
    with psycopg.connect(databases[STORES]) as connection:
        assert connection.execute("SELECT '[3,4]'::vector <-> '[0,0]'").fetchone() == (5.0,)
    assert [size.name for size in sizes(databases)] == [ORCHESTRATION, STORES, TRACKING]
    assert all(size.size_bytes and size.size_bytes > 2**20 for size in sizes(databases))


def test_a_server_that_cannot_be_reached_is_named_without_its_password(team: ServicesSettings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MESA_POSTGRES_URL", f"postgresql://mesa:{PASSWORD}@127.0.0.1:9/ours")
    with pytest.raises(MissingDependency, match=r"127\.0\.0\.1") as caught:
        team_databases(team)
    assert PASSWORD not in str(caught.value)
    assert sizes({STORES: f"postgresql://mesa:{PASSWORD}@127.0.0.1:9/ours"})[0].size_bytes is None


@pytest.mark.parametrize("address", [None, "", f"mysql://mesa:{PASSWORD}@db/ours", PASSWORD])
def test_an_address_that_is_none_is_refused_without_being_repeated(
    team: ServicesSettings, monkeypatch: pytest.MonkeyPatch, address: str | None
):
    monkeypatch.delenv("MESA_POSTGRES_URL", raising=False)
    if address is not None:
        monkeypatch.setenv("MESA_POSTGRES_URL", address)
    with pytest.raises(ConfigError, match="MESA_POSTGRES_URL") as caught:
        team_databases(team)
    assert PASSWORD not in str(caught.value)
