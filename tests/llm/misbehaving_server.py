"""A real HTTP server that speaks the chat completions and embeddings protocols, and misbehaves on purpose.

::

    with MisbehavingServer() as server:
        server.script = [status(429, retry_after="0"), CUT_BODY, say("fine")]
        ...                                    # requests to server.base_url
        assert len(server.requests) == 3

Each request takes the next act of the script; with the script at its end, ``server.otherwise`` is played. An act is a function
of the ``Exchange``, which may send anything, or nothing.
"""

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON = "application/json"
DIMENSIONS = 8
DRIP_SECONDS = 0.05


@dataclass(frozen=True)
class Logged:
    """A request as it arrived; names of headers are in lower case."""

    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    at: float

    @property
    def text(self) -> str:
        """Content of the last message."""
        return str(self.body["messages"][-1]["content"])


@dataclass
class Exchange:
    """A request that waits for a reply, and the means to give one.

    Attributes:
        request: What was asked.
        handler: The connection.
        closing: Set when the server closes.
    """

    request: Logged
    handler: BaseHTTPRequestHandler
    closing: threading.Event

    def send(self, body: bytes, status: int = 200, headers: Mapping[str, str] = {}, length: int | None = None) -> None:
        """Send a reply; with ``length`` more or less is promised than is sent."""
        self.handler.send_response(status)
        for name, value in {
            "Content-Type": JSON,
            "Content-Length": str(len(body) if length is None else length),
            **headers,
        }.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def cut(self) -> None:
        """Close the connection, whatever was promised."""
        self.handler.close_connection = True
        self.handler.connection.shutdown(socket.SHUT_RDWR)


Act = Callable[[Exchange], None]


@dataclass
class MisbehavingServer:
    """The server; as a context manager it runs on an ephemeral port of the loopback.

    Attributes:
        script: Acts for the next requests, in order of arrival.
        otherwise: The act of every other request.
        latency: Seconds before every act.
    """

    script: list[Act] = field(default_factory=list)
    otherwise: Act | None = None
    latency: float = 0.0
    requests: list[Logged] = field(default_factory=list)
    finished: list[Logged] = field(default_factory=list)
    most_in_flight: int = 0
    _in_flight: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closing: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "MisbehavingServer":
        self._http = _Server(("127.0.0.1", 0), _handler_of(self))
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def play(self, request: Logged, handler: BaseHTTPRequestHandler) -> None:
        """Reply to a request as the script says."""
        with self._lock:
            self.requests.append(request)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            act = self.script.pop(0) if self.script else self.otherwise or well
        try:
            self._closing.wait(self.latency)
            act(Exchange(request, handler, self._closing))
            with self._lock:
                self.finished.append(request)
        except OSError:  # the client left
            handler.close_connection = True
        finally:
            with self._lock:
                self._in_flight -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def _handler_of(server: MisbehavingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._play(body)

        def do_GET(self) -> None:
            self._play({})

        def _play(self, body: Mapping[str, Any]) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.play(Logged(self.path, body, headers, time.monotonic()), self)

        def log_message(self, *arguments: object) -> None:
            """Silence."""

    return Handler


# What a chat completion holds


def chat(message: Any, finish_reason: str | None = "stop", usage: Any = None, **more: Any) -> bytes:
    """Body of a chat completion."""
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage, **more}
    return json.dumps(body).encode()


def usage(prompt: Any = 100, completion: Any = 10, cached: Any = None) -> dict[str, Any]:
    """Usage of a chat completion."""
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": prompt, "completion_tokens": completion, **details}


def embeddings(vectors: Sequence[Any], used: Any = None) -> bytes:
    """Body of an embeddings reply."""
    data = [{"object": "embedding", "index": k, "embedding": vector} for k, vector in enumerate(vectors)]
    return json.dumps({"object": "list", "data": data, "model": "m", "usage": used or {"prompt_tokens": 5}}).encode()


def vector_of(text: str) -> list[float]:
    """A vector that depends on the text alone, of any length."""
    return [byte / 16 - 8 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]


# Acts


def well(exchange: Exchange) -> None:
    """A good reply: the last message in capitals, or a vector for each text."""
    body = exchange.request.body
    if exchange.request.path.endswith("/embeddings"):
        exchange.send(embeddings([vector_of(text) for text in body["input"]]))
    else:
        exchange.send(chat({"role": "assistant", "content": exchange.request.text.upper()}, usage=usage()))


def say(content: Any, finish_reason: str | None = "stop", used: Any = None, **fields: Any) -> Act:
    """A reply with this content, and other fields of the message."""
    body = chat({"role": "assistant", "content": content, **fields}, finish_reason, usage() if used is None else used)
    return lambda exchange: exchange.send(body)


def send(body: bytes, content_type: str = JSON, length: int | None = None) -> Act:
    """These bytes, with status 200."""
    return lambda exchange: exchange.send(body, headers={"Content-Type": content_type}, length=length)


def status(code: int, message: str = "no", retry_after: str | None = None, **more: Any) -> Act:
    """An error with a message, as OpenAI's servers word it."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    body = json.dumps({"error": {"message": message, "type": "error", "code": code}, **more}).encode()
    return lambda exchange: exchange.send(body, code, headers)


def vllm_overflow(limit: int, counted: int, max_tokens: int) -> Act:
    """The refusal of a conversation that is too long, in vLLM's words."""
    return status(
        400,
        f"This model's maximum context length is {limit} tokens. However, you requested {counted + max_tokens} tokens "
        f"({counted} in the messages, {max_tokens} in the completion). Please reduce the length of the messages or completion.",
    )


def llama_overflow(limit: int, counted: int) -> Act:
    """The same in llama.cpp's words."""
    return status(400, f"request ({counted} tokens) exceeds the available context size ({limit} tokens), try increasing it")


def echo_authorization(code: int) -> Act:
    """An error that repeats the secret it was sent."""
    return lambda exchange: status(code, f"not with {exchange.request.headers.get('authorization')}")(exchange)


def echo_authorization_in_reply(exchange: Exchange) -> None:
    """A good reply that repeats the secret it was sent."""
    say(exchange.request.headers.get("authorization"))(exchange)


def hang(exchange: Exchange) -> None:
    """Never a reply."""
    exchange.closing.wait()
    exchange.cut()


def drip_headers(exchange: Exchange) -> None:
    """The status line, and then a byte now and then for ever."""
    _drip(exchange, b"HTTP/1.1 200 OK\r\nX-Slow: ")


def drip_body(exchange: Exchange) -> None:
    """The headers, and then a byte now and then for ever."""
    _drip(exchange, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{")


def _drip(exchange: Exchange, beginning: bytes) -> None:
    exchange.handler.wfile.write(beginning)
    while not exchange.closing.wait(DRIP_SECONDS):
        exchange.handler.wfile.write(b" ")
    exchange.cut()


def cut_at_once(exchange: Exchange) -> None:
    """The connection is closed without a word."""
    exchange.cut()


def cut_body(exchange: Exchange) -> None:
    """The connection is closed in the middle of the body."""
    body = chat({"role": "assistant", "content": "never whole"}, usage=usage())
    exchange.send(body[: len(body) // 2], length=len(body))
    exchange.cut()
