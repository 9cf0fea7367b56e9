import httpx2
import pytest
from openai import APIStatusError

from mesa_pipeline.llm.troubles import Overflow, overflow_of, retry_after, trouble_of

NOON = "Mon, 30 Nov 2026 12:00:00 GMT"


def error(status: int, message: str) -> APIStatusError:
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://host/v1/chat/completions"))
    return APIStatusError(message, response=response, body=None)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (408, "slow", "passing"),
        (429, "busy", "passing"),
        (500, "broken", "passing"),
        (503, "the model's context length is being found out", "passing"),
        (401, "who are you", "refused"),
        (404, "no such model", "refused"),
        (400, "This model's maximum context length is 8192 tokens.", "overflow"),
        (400, "the request exceeds the available context size, try increasing it", "overflow"),
        (413, "prompt too long", "overflow"),
        (500, "Context size has been exceeded.", "overflow"),
        (400, "temperature exceeds its maximum of 2", "lasting"),
        (400, "unknown field chat_template_kwargs", "lasting"),
        (301, "moved", "lasting"),
    ],
)
def test_a_status_is_what_can_be_done_about_it(status: int, message: str, kind: str):
    assert trouble_of(error(status, message)).kind == kind


@pytest.mark.parametrize(
    ("said", "figures"),
    [
        (
            "maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages",
            Overflow(4096, 4500),
        ),
        (
            "maximum context length is 4096 tokens and your request has 4000 input tokens (500 > 4096 - 4000)",
            Overflow(4096, 4000),
        ),
        ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", Overflow(4096, 5000)),
        ("maximum context length is 8192 tokens. However, your messages resulted in 9161 tokens", Overflow(8192, 9161)),
        ("maximum context length is 4096 tokens. your prompt contains at least 4097 input tokens", Overflow(4096, None)),
        ("prompt too long", Overflow(None, None)),
        ("", Overflow(None, None)),
    ],
)
def test_the_figures_of_a_refusal_are_read_in_each_servers_words(said: str, figures: Overflow):
    assert overflow_of(said) == figures


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT", "date": NOON}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:59:00 GMT", "date": NOON}, 0.0),
        ({"retry-after": NOON}, None),
    ],
)
def test_how_long_to_wait_is_a_number_or_a_date_by_the_servers_clock(headers: dict[str, str], seconds: float | None):
    assert retry_after(httpx2.Headers(headers)) == seconds
