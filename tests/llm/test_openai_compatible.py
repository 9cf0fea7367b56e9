"""Requests of the chat client: what they hold, what their replies are kept by, and how they are made to fit."""

from collections.abc import Callable
from typing import Any

import pytest

from mesa_pipeline.errors import ModelError
from mesa_pipeline.llm import Message
from mesa_pipeline.llm.openai_compatible import OpenAIChat
from tests.llm.conftest import OpenClient, WordCounter
from tests.llm.misbehaving_server import Act, Exchange, MisbehavingServer, llama_overflow, status, vllm_overflow, well

ASK = (Message("system", "be loud"), Message("user", "hello"))
SCHEMA = {"type": "object", "properties": {"steps": {"type": "array"}}}
LONG = (Message("system", "be loud"), Message("user", " ".join(f"w{k}" for k in range(1000))))


def test_a_request_holds_what_changes_the_reply_and_nothing_else(server: MisbehavingServer, open_client: OpenClient):
    open_client().chat(schema=SCHEMA).complete(ASK, seed=5)
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].body == {
        "model": "Qwen/Qwen3-32B",
        "messages": [{"role": "system", "content": "be loud"}, {"role": "user", "content": "hello"}],
        "temperature": 0.0,
        "max_tokens": 64,
        "chat_template_kwargs": {"enable_thinking": False},
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}},
    }


def test_what_an_endpoint_does_not_understand_is_not_sent(server: MisbehavingServer, open_client: OpenClient):
    open_client(chat_template_kwargs=False, json_schema=False).chat(schema=SCHEMA).complete(ASK)
    assert server.requests[0].body.keys() == {"model", "messages", "temperature", "max_tokens"}


def test_sampling_is_seeded_and_any_seed_is_one_that_servers_take(server: MisbehavingServer, open_client: OpenClient):
    chat = open_client().chat(temperature=0.7)
    chat.complete(ASK, seed=2**40 + 3)
    assert server.requests[0].body["seed"] == 3


OpenChanged = Callable[[OpenClient], OpenAIChat]
CHANGED: dict[str, tuple[OpenChanged, tuple[Message, ...], int]] = {
    "model": (lambda open_client: open_client(model="another").chat(temperature=0.5, schema=SCHEMA), ASK, 0),
    "thinking": (lambda open_client: open_client(thinking=True).chat(temperature=0.5, schema=SCHEMA), ASK, 0),
    "temperature": (lambda open_client: open_client().chat(temperature=0.6, schema=SCHEMA), ASK, 0),
    "longest reply": (lambda open_client: open_client().chat(temperature=0.5, schema=SCHEMA, max_tokens=65), ASK, 0),
    "schema": (lambda open_client: open_client().chat(temperature=0.5, schema={"type": "array"}), ASK, 0),
    "no schema": (lambda open_client: open_client().chat(temperature=0.5), ASK, 0),
    "seed": (lambda open_client: open_client().chat(temperature=0.5, schema=SCHEMA), ASK, 1),
    "a role": (lambda open_client: open_client().chat(temperature=0.5, schema=SCHEMA), (Message("user", "be loud"), ASK[1]), 0),
    "a character": (
        lambda open_client: open_client().chat(temperature=0.5, schema=SCHEMA),
        (ASK[0], Message("user", "hello ")),
        0,
    ),
    "order": (lambda open_client: open_client().chat(temperature=0.5, schema=SCHEMA), ASK[::-1], 0),
}


@pytest.mark.parametrize("part", CHANGED)
def test_whatever_changes_the_reply_is_asked_anew(part: str, server: MisbehavingServer, open_client: OpenClient):
    open_client().chat(temperature=0.5, schema=SCHEMA).complete(ASK)
    opened, messages, seed = CHANGED[part]
    opened(open_client).complete(messages, seed)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"base_url": "http://127.0.0.1:9/v1"},
        {"key_variable": "OTHER"},
        {"timeout_seconds": 1.5},
        {"max_attempts": 1},
        {"backoff_seconds": 9.0},
        {"max_concurrency": 1},
        {"context_tokens": 1024},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_where_and_how_patiently_is_no_reason_to_ask_anew(
    changed: dict[str, Any], server: MisbehavingServer, open_client: OpenClient
):
    first = open_client().chat().complete(ASK)
    assert open_client(**changed).chat().complete(ASK) == first
    assert len(server.requests) == 1


def test_temperature_0_needs_no_seed(server: MisbehavingServer, open_client: OpenClient):
    chat = open_client().chat()
    assert [chat.complete(ASK, seed).text for seed in range(3)] == ["HELLO"] * 3
    assert len(server.requests) == 1


def test_the_name_tells_models_apart_by_all_that_is_sent(open_client: OpenClient):
    names = [
        open_client().chat().name,
        open_client().chat(temperature=0.5).name,
        open_client().chat(max_tokens=65).name,
        open_client().chat(schema=SCHEMA).name,
        open_client(thinking=True).chat().name,
        open_client(chat_template_kwargs=False).chat().name,
        open_client(model="another").chat().name,
        open_client(context_tokens=9999).chat().name,
    ]
    assert names[0] == "Qwen/Qwen3-32B (temperature 0, 64 of 32768 tokens, no thinking)"
    assert len(set(names)) == len(names)
    assert open_client(json_schema=False).chat(schema=SCHEMA).name == names[0]


def test_a_conversation_is_made_to_fit_before_it_is_sent(server: MisbehavingServer, open_client: OpenClient):
    open_client(context_tokens=300).chat().complete(LONG)
    (request,) = server.requests
    assert len(request.text.split()) <= 300 - 64
    assert request.text.startswith("w0 w1 ")
    assert request.text.endswith(" w998 w999")
    assert request.body["messages"][0]["content"] == "be loud"


def limited(limit: int, refuse: Callable[[int], Act], per_word: int = 3) -> Act:
    """A server that counts three tokens a word, and refuses beyond its limit."""

    def act(exchange: Exchange) -> None:
        counted = sum(per_word * len(message["content"].split()) for message in exchange.request.body["messages"])
        (refuse(counted) if counted + exchange.request.body["max_tokens"] > limit else well)(exchange)

    return act


REFUSALS: dict[str, Callable[[int], Act]] = {
    "vLLM": lambda counted: vllm_overflow(1000, counted, 64),
    "vLLM, input tokens": lambda counted: status(
        400,
        f"This model's maximum context length is 1000 tokens. However, your request has {counted} input tokens. Please reduce",
    ),
    "llama.cpp": lambda counted: llama_overflow(1000, counted),
    "OpenAI": lambda counted: status(
        400, f"This model's maximum context length is 1000 tokens. However, your messages resulted in {counted} tokens."
    ),
}


@pytest.mark.parametrize("wording", REFUSALS)
def test_a_server_that_counts_more_tokens_is_believed_once(wording: str, server: MisbehavingServer, open_client: OpenClient):
    """Our counter sees 1,000 tokens where the server sees 3,000 and takes 936."""
    server.otherwise = limited(1000, REFUSALS[wording])
    client = open_client(context_tokens=2000)
    client.chat().complete(LONG)
    first, second = (len(request.text.split()) for request in server.requests)
    assert first == 1000
    assert 0.85 * 936 <= 3 * second <= 936
    assert (client.spent.attempts, client.spent.failed) == (2, 1)


def test_a_server_that_does_not_say_by_how_much_gets_half(server: MisbehavingServer, open_client: OpenClient):
    server.otherwise = limited(1000, lambda counted: status(400, "the prompt is too long"), per_word=1)
    open_client(context_tokens=2000).chat().complete((Message("user", LONG[1].content),))
    first, second = (len(request.text.split()) for request in server.requests)
    assert first == 1000
    assert 450 <= second <= 510


def test_at_least_so_many_is_no_count(server: MisbehavingServer, open_client: OpenClient):
    said = (
        "This model's maximum context length is 1000 tokens. However, you requested 64 output tokens and your prompt contains "
        "at least 937 input tokens, for a total of at least 1001 tokens."
    )
    server.otherwise = limited(1000, lambda counted: status(400, said), per_word=1)
    open_client(context_tokens=2000).chat().complete(LONG)
    assert [len(request.text.split()) > 510 for request in server.requests] == [True, False]


def test_a_server_that_refuses_for_ever_is_asked_twice(server: MisbehavingServer, open_client: OpenClient):
    server.otherwise = llama_overflow(1000, 5000)
    with pytest.raises(ModelError, match=r"HTTP 400: .*exceeds the available context size"):
        open_client(context_tokens=2000).chat().complete(LONG)
    assert len(server.requests) == 2


def test_a_context_smaller_than_the_reply_is_not_trimmed_for(server: MisbehavingServer, open_client: OpenClient):
    server.otherwise = llama_overflow(50, 1000)
    with pytest.raises(ModelError, match="exceeds the available context size"):
        open_client().chat().complete(LONG)
    assert len(server.requests) == 1


def test_a_conversation_shortened_once_is_replayed_without_the_server(server: MisbehavingServer, open_client: OpenClient):
    server.otherwise = limited(1000, lambda counted: llama_overflow(1000, counted))
    first = open_client(context_tokens=2000).chat().complete(LONG)
    assert open_client(context_tokens=2000, base_url="http://127.0.0.1:9/v1").chat().complete(LONG) == first
    assert len(server.requests) == 2


@pytest.mark.parametrize("per_word", [1, 7])
def test_a_counter_that_counts_more_trims_more(per_word: int, server: MisbehavingServer, open_client: OpenClient):
    open_client(context_tokens=700).chat(WordCounter(per_word)).complete(LONG)
    assert per_word * len(server.requests[0].text.split()) <= 700 - 64
