"""The chat client against a real server that misbehaves on purpose."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mesa_pipeline.errors import MissingDependency, ModelError
from mesa_pipeline.llm import Completion, Message
from mesa_pipeline.llm.cache import ReplyCache
from tests.llm import misbehaving_server as server_that
from tests.llm.conftest import OpenClient
from tests.llm.misbehaving_server import MisbehavingServer, chat, say, send, status, usage

ASK = (Message("system", "be loud"), Message("user", "hello"))
MEGABYTE = "x" * 1_000_000

PASSING = {
    "429 storm": [status(429)] * 4,
    "429 with Retry-After": [status(429, retry_after="1")],
    "429 with a senseless Retry-After": [
        status(429, retry_after="nan"),
        status(429, retry_after="-5"),
        status(429, retry_after="soon"),
    ],
    "500": [status(500)],
    "502 with a page": [lambda exchange: exchange.send(b"<html>bad gateway</html>", 502, {"Content-Type": "text/html"})],
    "503": [status(503)],
    "cut at once": [server_that.cut_at_once],
    "cut in the body": [server_that.cut_body],
    "cut JSON": [send(chat({"content": "x"})[:40])],
    "not JSON": [send(b"<html>welcome</html>", "text/html")],
    "not JSON but says so": [send(b"oops")],
    "no object": [send(b"[1, 2]")],
    "nothing": [send(b"")],
    "deep nesting": [send(b"[" * 100_000)],
    "not UTF-8": [send(b"\xff\xfe\x00")],
    "missing choices": [send(b'{"object": "chat.completion"}')],
    "empty choices": [send(b'{"choices": []}')],
    "choices that are none": [send(b'{"choices": 7}')],
    "choice that is none": [send(b'{"choices": ["x"]}')],
    "message that is none": [send(chat("text"))],
    "null message": [send(chat(None))],
    "null content": [say(None)],
    "content that is a list": [say([{"type": "text"}])],
}


@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_is_asked_again_and_nothing_is_lost(fault: str, server: MisbehavingServer, open_client: OpenClient):
    server.script = list(PASSING[fault])
    client = open_client()
    assert client.chat().complete(ASK).text == "HELLO"
    faults = len(PASSING[fault])
    assert len(server.requests) == faults + 1
    assert (client.spent.attempts, client.spent.failed) == (faults + 1, faults)
    assert len(client.pauses.seconds) == faults


@pytest.mark.parametrize("fault", PASSING)
def test_what_does_not_pass_fails_that_request_and_is_not_remembered(
    fault: str, server: MisbehavingServer, open_client: OpenClient
):
    server.otherwise = PASSING[fault][0]
    client = open_client(max_attempts=2)
    with pytest.raises(ModelError, match="2 times"):
        client.chat().complete(ASK)
    assert len(server.requests) == 2
    server.otherwise = None
    assert client.chat().complete(ASK).text == "HELLO"
    assert (client.spent.attempts, client.spent.failed, client.spent.replayed) == (3, 2, 0)


@pytest.mark.parametrize("act", [server_that.hang, server_that.drip_headers, server_that.drip_body])
def test_a_reply_that_never_ends_is_given_up(act: server_that.Act, server: MisbehavingServer, open_client: OpenClient):
    server.otherwise = act
    client = open_client(timeout_seconds=0.5, max_attempts=2)
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"no whole reply in time, 2 times"):
        client.chat().complete(ASK)
    assert 1.0 <= time.monotonic() - started < 20.0
    assert client.spent.failed == 2
    assert 1.0 <= client.spent.seconds < 20.0


def test_a_deadline_that_passed_does_not_spoil_the_next_request(server: MisbehavingServer, open_client: OpenClient):
    chat_model = open_client(timeout_seconds=1.0).chat()
    assert chat_model.complete(ASK).text == "HELLO"
    time.sleep(1.1)
    assert chat_model.complete([Message("user", "again, on the same connection")]).text.startswith("AGAIN")
    assert len(server.requests) == 2


def test_pauses_double_and_heed_the_server_within_bounds(server: MisbehavingServer, open_client: OpenClient):
    server.script = [status(429)] * 4 + [status(429, retry_after="7"), status(503, retry_after="3600")]
    client = open_client(backoff_seconds=1.0, max_backoff_seconds=5.0, max_attempts=7)
    client.chat().complete(ASK)
    doubling, asked = client.pauses.seconds[:4], client.pauses.seconds[4:]
    assert all(bound / 2 <= pause <= bound for pause, bound in zip(doubling, [1.0, 2.0, 4.0, 5.0], strict=True))
    assert asked == [5.0, 5.0]


def test_the_last_of_the_attempts_counts(server: MisbehavingServer, open_client: OpenClient):
    server.script = [status(429)] * 3
    assert open_client(max_attempts=4).chat().complete(ASK).text == "HELLO"
    server.script = [status(429)] * 4
    with pytest.raises(ModelError, match=r"HTTP 429: .*no.*4 times"):
        open_client(max_attempts=4).chat().complete([Message("user", "another")])


@pytest.mark.parametrize("code", [401, 403, 404])
def test_who_is_refused_is_told_what_to_check_and_does_not_insist(
    code: int, server: MisbehavingServer, open_client: OpenClient
):
    server.otherwise = status(code, "no such model")
    with pytest.raises(MissingDependency, match=f"HTTP {code}.*no such model.*check the model and the key"):
        open_client().chat().complete(ASK)
    assert len(server.requests) == 1


def test_nobody_there_names_the_place_and_the_remedy(open_client: OpenClient):
    client = open_client(base_url="http://127.0.0.1:9/v1", max_attempts=2)
    with pytest.raises(
        MissingDependency, match=r"at http://127.0.0.1:9/v1 cannot be reached .*start it, or correct its base_url"
    ):
        client.chat().complete(ASK)
    assert client.spent.failed == 2


def test_a_request_that_can_never_go_well_is_sent_once(server: MisbehavingServer, open_client: OpenClient):
    server.otherwise = status(400, "temperature must be non-negative")
    with pytest.raises(ModelError, match=r"HTTP 400: .*temperature must be non-negative"):
        open_client().chat().complete(ASK)
    assert len(server.requests) == 1


def test_usage_of_failed_attempts_is_counted(server: MisbehavingServer, open_client: OpenClient):
    """Two replies that nobody can use, each billed with 100 tokens, then a good one: 300."""
    server.script = [say(None, used=usage(100, 10, cached=40)), status(500, usage=usage(100, 0))]
    client = open_client()
    client.chat().complete(ASK)
    spent = client.spent
    assert (spent.attempts, spent.failed) == (3, 2)
    assert (spent.prompt_tokens, spent.cached_tokens, spent.completion_tokens) == (300, 40, 20)


def test_a_reply_from_the_cache_costs_nothing_and_says_the_same(server: MisbehavingServer, open_client: OpenClient):
    server.script = [say("once", used=usage(100, 10, cached=64))]
    client = open_client()
    first = client.chat().complete(ASK)
    paid = client.spent
    again = [open_client().chat().complete(ASK) for _ in range(3)]
    assert again == [first] * 3
    assert first == Completion("once", prompt_tokens=100, completion_tokens=10, cached_tokens=64)
    assert len(server.requests) == 1
    assert client.spent.replayed == 3
    assert (client.spent.attempts, client.spent.prompt_tokens, client.spent.seconds) == (1, 100, paid.seconds)


SENSELESS = {
    "missing": (None, 0),
    "an empty object": ({}, 0),
    "a word": ("many", 0),
    "zero": (usage(0, 0), 0),
    "negative": (usage(-5, -5), 0),
    "absurd": (usage(10**30, 10), 0),
    "a truth": (usage(True, True), 0),
    "a fraction": (usage(1.5, 2.5), 0),
    "text": (usage("100", "10"), 0),
    "null": (usage(None, None), 0),
    "more cached than there are": (usage(100, 10, cached=500), 100),
}


@pytest.mark.parametrize("name", SENSELESS)
def test_usage_that_makes_no_sense_is_nothing(name: str, server: MisbehavingServer, open_client: OpenClient):
    reported, prompt_tokens = SENSELESS[name]
    server.script = [send(chat({"content": "fine"}, usage=reported))]
    client = open_client()
    completion = client.chat().complete(ASK)
    assert (completion.text, completion.prompt_tokens, completion.cached_tokens) == ("fine", prompt_tokens, prompt_tokens)
    assert (client.spent.prompt_tokens, client.spent.cached_tokens) == (prompt_tokens, prompt_tokens)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("ok \ud83d", "ok ?"),
        ("\udfff", "?"),
        ("a\x00b", "a\x00b"),
        ("\u202egnp", "\u202egnp"),
        ("{}{{%", "{}{{%"),
        (MEGABYTE, MEGABYTE),
        (" ", " "),
    ],
    ids=["high half", "low half", "NUL", "right to left", "braces", "a megabyte", "a space"],
)
def test_any_text_comes_back_from_the_cache_as_it_came(
    content: str, expected: str, server: MisbehavingServer, open_client: OpenClient
):
    server.script = [say(content)]
    assert open_client().chat().complete(ASK).text == expected
    assert open_client().chat().complete(ASK).text == expected
    assert len(server.requests) == 1


def test_halves_of_surrogate_pairs_in_a_request_are_replaced(server: MisbehavingServer, open_client: OpenClient):
    assert open_client().chat().complete([Message("user", "odd \ud83d")]).text == "ODD ?"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("content", [None, ""])
def test_text_where_the_reasoning_should_be_is_the_reply_with_thinking_off(
    field: str, content: str | None, server: MisbehavingServer, open_client: OpenClient
):
    server.script = [say(content, **{field: "the answer"})]
    assert open_client().chat().complete(ASK).text == "the answer"
    assert len(server.requests) == 1


def test_reasoning_is_no_reply_with_thinking_on(server: MisbehavingServer, open_client: OpenClient):
    server.script = [say("the answer", reasoning_content="hm"), say(None, "length", reasoning_content="hm, hm")]
    chat_model = open_client(thinking=True).chat()
    assert chat_model.complete(ASK).text == "the answer"
    with pytest.raises(ModelError, match="ended before its text began; allow more tokens"):
        chat_model.complete([Message("user", "a hard one")])
    assert len(server.requests) == 2


def test_an_empty_reply_is_asked_for_once_more(server: MisbehavingServer, open_client: OpenClient):
    server.script = [say("")]
    client = open_client()
    assert client.chat().complete(ASK).text == "HELLO"
    assert client.spent.attempts == 2


def test_an_empty_reply_said_twice_is_the_reply(server: MisbehavingServer, open_client: OpenClient):
    server.otherwise = say("")
    assert open_client().chat().complete(ASK).text == ""
    assert open_client().chat().complete(ASK).text == ""
    assert len(server.requests) == 2


def test_no_room_left_for_a_reply_is_a_failure_that_names_the_remedy(server: MisbehavingServer, open_client: OpenClient):
    server.otherwise = say("", "length")
    with pytest.raises(ModelError, match="allow more tokens for this role"):
        open_client().chat().complete(ASK)
    assert len(server.requests) == 1


def test_a_reply_that_was_cut_is_not_asked_for_again(server: MisbehavingServer, open_client: OpenClient):
    server.otherwise = say('{"triples": [["a", "b", "c"], ["d"', "length")
    completion = open_client().chat().complete(ASK)
    assert completion.finish_reason == "length"
    assert len(server.requests) == 1


def test_equal_requests_made_at_once_are_one_call(server: MisbehavingServer, open_client: OpenClient):
    server.latency = 0.2
    server.script = [say(f"reply {k}") for k in range(8)]
    client = open_client()
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda _: client.chat().complete(ASK).text, range(8)))
    assert texts == ["reply 0"] * 8
    assert len(server.requests) == 1
    assert (client.spent.attempts, client.spent.replayed) == (1, 7)


def test_of_two_processes_that_ask_the_same_at_once_the_first_reply_counts(server: MisbehavingServer, open_client: OpenClient):
    """Models are not quite deterministic; what a run goes by must be what a rerun finds in the cache."""

    def while_another_is_faster(exchange: server_that.Exchange) -> None:
        ReplyCache(client.folder / "llm" / "replies.sqlite").put(exchange.request.body, Completion("first", 1, 1))
        say("second")(exchange)

    server.otherwise = while_another_is_faster
    client = open_client()
    assert client.chat().complete(ASK).text == "first"
    assert open_client().chat().complete(ASK).text == "first"


def test_as_many_requests_are_in_flight_as_the_settings_say_and_no_more(server: MisbehavingServer, open_client: OpenClient):
    """The first four replies wait for one another: they come only where four requests are in flight at once."""
    together = threading.Barrier(4)

    def once_four_are_here(exchange: server_that.Exchange) -> None:
        together.wait(timeout=30)
        server_that.well(exchange)

    server.script = [once_four_are_here] * 4
    server.latency = 0.02
    chat_model = open_client(max_concurrency=4).chat()
    with ThreadPoolExecutor(12) as pool:
        texts = list(pool.map(lambda k: chat_model.complete([Message("user", f"text {k}")]).text, range(24)))
    assert texts == [f"TEXT {k}" for k in range(24)]
    assert server.most_in_flight == 4


def test_waiting_for_a_turn_is_not_counted_against_a_request(server: MisbehavingServer, open_client: OpenClient):
    """Ten requests of 0.3 s one after the other, each of which may take 2 s."""
    server.latency = 0.3
    client = open_client(max_concurrency=1, timeout_seconds=2.0, max_attempts=1)
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda k: client.chat().complete([Message("user", f"text {k}")]), range(10)))
    assert server.most_in_flight == 1
    assert 3.0 <= client.spent.seconds <= 10.0


def test_a_request_that_waits_to_try_again_makes_room(server: MisbehavingServer, open_client: OpenClient):
    """With one request at a time, the other one is served while the first one pauses."""
    paused, served = threading.Event(), threading.Event()
    server.script = [status(429)]

    def until_the_other_is_served(seconds: float) -> None:
        paused.set()
        assert served.wait(30)

    chat_model = open_client(max_concurrency=1, sleep=until_the_other_is_served).chat()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(chat_model.complete, [Message("user", "a")])
        assert paused.wait(30)
        assert chat_model.complete([Message("user", "b")]).text == "B"
        served.set()
        assert first.result(30).text == "A"
