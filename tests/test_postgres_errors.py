"""What PostgreSQL's client says is told apart and told on, but for passwords."""

import pytest

from mesa_pipeline.postgres_errors import is_plain, may_pass, told, without_driver

ON_SOCKET = 'connection to server on socket "/tmp/x/.s.PGSQL.5432" failed: '
OVER_TCP = 'connection to server at "127.0.0.1", port 5432 failed: '


@pytest.mark.parametrize(
    "said",
    [
        f"{OVER_TCP}Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?",
        f"{ON_SOCKET}No such file or directory\n\tIs the server running locally and accepting connections on that socket?",
        f"{ON_SOCKET}FATAL:  the database system is starting up",
        f"{ON_SOCKET}FATAL:  the database system is in recovery mode",
        f"{OVER_TCP}FATAL:  sorry, too many clients already",
        f"{OVER_TCP}server closed the connection unexpectedly",
        f"{OVER_TCP}timeout expired",
        'could not translate host name "db" to address: Temporary failure in name resolution',
    ],
)
def test_a_server_that_is_down_may_be_there_later(said: str):
    assert may_pass(said)


@pytest.mark.parametrize(
    "said",
    [
        f'{OVER_TCP}FATAL:  password authentication failed for user "mesa"',
        f"{ON_SOCKET}fe_sendauth: no password supplied",
        f'{OVER_TCP}FATAL:  database "mesa" does not exist',
        f'{OVER_TCP}FATAL:  no pg_hba.conf entry for host "127.0.0.1", user "mesa", database "mesa"',
        'could not translate host name "db" to address: Name or service not known',
    ],
)
def test_a_server_that_refuses_does_so_later_too(said: str):
    assert not may_pass(said)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg2"])
@pytest.mark.parametrize(
    "rest",
    [
        "mesa:x%40y%2F%25@db.example.org:5432/mesa?sslmode=require",
        "mesa@/mesa?host=%2Ftmp%2Fsockets&port=5432",
        "mesa:x@[::1]:5432/mesa",
        "mesa:x@one:5432,two:5433/mesa?target_session_attrs=read-write",
        "/mesa",
    ],
)
def test_a_plain_address_has_its_client_s_words_told(scheme: str, rest: str):
    address = f"{scheme}://{rest}"
    assert without_driver(address) == f"postgresql://{rest}"
    assert is_plain(address)
    assert told(" it\n\tsaid  so", address) == "it said so"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://mesa:hun/ter2@db/mesa",
        "postgresql://mesa:hun?ter2@db/mesa",
        "postgresql://mesa:hun#ter2@db/mesa",
        "postgresql://mesa:hun@ter2@db/mesa",
        "postgresql://mesa:hun:ter2@db/mesa",
        "postgresql://mesa:hun%ter2@db/mesa",
        "postgresql://mesa:hun%00ter2@db/mesa",
        "postgresql://mesa:hun ter2@db/mesa",
        "postgresql://mesa:hun[ter2@db/mesa",
        "postgresql://mesa:hun\N{ACCOUNT OF}ter2@db/mesa",
        "postgresql://mesa:hunter2",
        "postgresql://mesa@db/mesa?password=hunter2",
        "host=db password=hunter2",
        "mysql://mesa:hunter2@db/mesa",
    ],
)
def test_words_about_an_address_that_a_client_takes_apart_otherwise_are_kept(address: str):
    assert told('invalid port number: "hun"', address) is None


def test_an_address_of_something_else_stays_as_it_is():
    assert without_driver("sqlite:///mlflow.db") == "sqlite:///mlflow.db"
    assert without_driver("https://host/?to=postgres://x") == "https://host/?to=postgres://x"
