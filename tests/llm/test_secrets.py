"""The endpoint's secret is sent to the endpoint, and stands nowhere else."""

import logging
import traceback
from pathlib import Path

import pytest
from pydantic import ValidationError

from mesa_pipeline.config import ChatSettings
from mesa_pipeline.errors import ConfigError, MesaError
from mesa_pipeline.llm import Message
from tests.llm.conftest import OpenClient
from tests.llm.misbehaving_server import (
    Act,
    MisbehavingServer,
    cut_at_once,
    echo_authorization,
    echo_authorization_in_reply,
    status,
)

KEY = "sk-live-4f9a8b7c6d5e"
ASK = (Message("user", "hello"),)


def written_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_the_key_is_sent(server: MisbehavingServer, open_client: OpenClient):
    open_client(f" {KEY}\n").chat().complete(ASK)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "act", [*map(echo_authorization, (400, 401, 429, 500)), cut_at_once], ids=["400", "401", "429", "500", "cut"]
)
def test_it_stands_in_no_file_error_or_log(
    act: Act, server: MisbehavingServer, open_client: OpenClient, caplog: pytest.LogCaptureFixture
):
    server.otherwise = act
    client = open_client(KEY, max_attempts=2)
    with caplog.at_level(logging.DEBUG), pytest.raises(MesaError) as caught:
        client.chat().complete(ASK)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in caplog.text
    assert caplog.records
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY.encode() not in written_below(client.folder)
    assert KEY not in repr(client.endpoint) + repr(client.chat()) + client.chat().name


@pytest.mark.parametrize("padding", range(200, 300, 11))
def test_nor_does_a_part_of_it_where_what_was_said_is_cut_short(
    padding: int, server: MisbehavingServer, open_client: OpenClient
):
    server.otherwise = lambda exchange: status(400, "x" * padding + exchange.request.headers["authorization"])(exchange)
    with pytest.raises(MesaError) as caught:
        open_client(KEY).chat().complete(ASK)
    assert "x" * 200 in str(caught.value)
    assert KEY[:8] not in str(caught.value)


def test_a_reply_that_repeats_it_is_kept_without_it(server: MisbehavingServer, open_client: OpenClient):
    server.otherwise = echo_authorization_in_reply
    client = open_client(KEY)
    assert client.chat().complete(ASK).text == "Bearer [key]"
    assert KEY.encode() not in written_below(client.folder)


def test_a_key_that_is_a_word_leaves_replies_alone(server: MisbehavingServer, open_client: OpenClient):
    """Servers without keys are given one such as EMPTY."""
    assert open_client("EMPTY").chat().complete([Message("user", "the room is empty")]).text == "THE ROOM IS EMPTY"


@pytest.mark.parametrize("key", ["sk-\u00e9t\u00e9-secret", "sk-two\nlines", "sk-nul\x00"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(key: str, open_client: OpenClient):
    with pytest.raises(ConfigError, match="the secret in MESA_API_KEY holds a character") as caught:
        open_client(key)
    assert "sk-" not in str(caught.value)


def test_what_the_environment_holds_for_others_is_not_sent(
    server: MisbehavingServer, open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "for-another")
    open_client().chat().complete(ASK)
    assert "for-another" not in str(server.requests[0].headers)


@pytest.mark.parametrize(
    "base_url", ["http://me:secret@host/v1", "host:8000/v1", "file:///etc", "http://host/v1#x", "http://a b/"]
)
def test_an_address_has_no_place_for_a_secret(base_url: str, chat_settings: ChatSettings):
    with pytest.raises(ValidationError, match="base_url"):
        ChatSettings(**{**chat_settings.model_dump(), "base_url": base_url})
