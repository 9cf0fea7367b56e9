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


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A server that wants a password of ``guest``, and does not let that user into the database ``closed`` at all."""
    folder = tmp_path_factory.mktemp("guarded") / "postgres"
    with EmbeddedPostgres(folder) as server:
        for name in ("ours", "team_dagster", "closed"):
            server.ensure_database(name, ["vector"])
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE ROLE guest LOGIN PASSWORD 'right'")
    rules = "local all mesa trust", "local closed all reject", "local all all scram-sha-256"
    (folder / "data" / "pg_hba.conf").write_text("\n".join((*rules, "")))
    with EmbeddedPostgres(folder) as server:
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


@needs_postgres
def test_a_wrong_password_is_said_in_the_server_s_words_and_not_repeated(
    team: ServicesSettings, guarded: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MESA_POSTGRES_URL", guarded.url("ours").replace("://mesa@", f"://guest:{PASSWORD}@"))
    refusal = r"database 'ours' cannot be used \(.*password authentication failed for user \"guest\"\)"
    with pytest.raises(MissingDependency, match=refusal) as caught:
        team_databases(team)
    assert PASSWORD not in str(caught.value)


@needs_postgres
@pytest.mark.parametrize(
    ("mlflow_database", "refusal"),
    [
        ("closed", r"database 'closed' cannot be used \(.*pg_hba\.conf rejects connection"),
        ("new", r"database 'new' cannot be used \(permission denied to create database\)"),
    ],
)
def test_each_database_is_tried_and_the_one_that_is_refused_is_named(
    team: ServicesSettings,
    guarded: EmbeddedPostgres,
    monkeypatch: pytest.MonkeyPatch,
    mlflow_database: str,
    refusal: str,
):
    monkeypatch.setenv("MESA_POSTGRES_URL", guarded.url("ours").replace("://mesa@", "://guest:right@"))
    with pytest.raises(MissingDependency, match=refusal):
        team_databases(team.model_copy(update={"mlflow_database": mlflow_database}))


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        f"mysql://mesa:{PASSWORD}@db/ours",
        PASSWORD,
        *(f"postgresql://mesa:{PASSWORD}{unescaped}@db/ours" for unescaped in ("/1", "@", "#", "?", "[", "%", " ")),
    ],
)
def test_an_address_that_is_none_is_refused_without_being_repeated(
    team: ServicesSettings, monkeypatch: pytest.MonkeyPatch, address: str | None
):
    monkeypatch.delenv("MESA_POSTGRES_URL", raising=False)
    if address is not None:
        monkeypatch.setenv("MESA_POSTGRES_URL", address)
    with pytest.raises(ConfigError, match="MESA_POSTGRES_URL") as caught:
        team_databases(team)
    assert PASSWORD not in str(caught.value)
