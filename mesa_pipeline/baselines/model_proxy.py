"""A loopback endpoint by which a wrapped package asks our models: cached, retried, counted and reported as all others.

It speaks as much of the OpenAI protocol as such packages use. Whoever has no part in it is kept out by a key that is made anew
each time. What a package sends beside messages (sampling, limits, formats) is left aside: how a model replies is for the
settings to say.
"""

import json
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from mesa_pipeline.errors import SystemFailure
from mesa_pipeline.llm import ChatModel, Completion, Embedder, Message
from mesa_pipeline.llm.metering import in_turn
from mesa_pipeline.llm.replies import valid_unicode

HOST = "127.0.0.1"
MAX_BODY = 64 * 2**20


class ModelProxy:
    """Serves a language model and an embedder to one worker, while it is entered.

    Args:
        open_model: Opens the language model.
        open_embedder: Opens the embedding model.

    Attributes:
        key: What requests have to bear.
    """

    def __init__(self, open_model: Callable[[], ChatModel], open_embedder: Callable[[], Embedder]) -> None:
        self._open_model = open_model
        self._open_embedder = open_embedder
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._context: Context = copy_context()
        self._failure: Exception | None = None
        self._inspect: Callable[[str], None] | None = None
        self.key = secrets.token_urlsafe(24)

    def __enter__(self) -> Self:
        self._server = _Server((HOST, 0), _handler_of(self))
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Base URL of the endpoint."""
        return f"http://{HOST}:{self._server.server_address[1]}/v1"

    @contextmanager
    def serving(self, inspect: Callable[[str], None] | None = None) -> Iterator[None]:
        """Take what comes meanwhile as part of what this thread is doing, so that its meter counts it; other threads wait.

        Args:
            inspect: Shown every reply, in that meter.

        Raises:
            Exception: The first failure meanwhile, of a model or of what keeps its replies, whatever the package made of it;
                packages tend to go on without the reply.
        """
        with in_turn(self._turn):
            with self._lock:
                self._context, self._failure, self._inspect = copy_context(), None, inspect
            try:
                yield
            except SystemFailure as error:
                self._raise_failure(error)
                raise
            self._raise_failure(None)

    def answer(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """The reply to a request; ``None`` where there is nothing of that path.

        Raises:
            MesaError: The model gave no reply.
            Exception: It is no request, or the reply could not be kept.
        """
        with self._lock:
            context, inspect = self._context.copy(), self._inspect
        try:
            if path.endswith("/chat/completions"):
                return context.run(self._complete, body, inspect)
            return context.run(self._embed, body) if path.endswith("/embeddings") else None
        except Exception as error:
            with self._lock:
                self._failure = self._failure or error
            raise

    def _raise_failure(self, cause: Exception | None) -> None:
        with self._lock:
            failure = self._failure
        if failure is not None:
            raise failure from cause

    def _complete(self, body: Mapping[str, Any], inspect: Callable[[str], None] | None) -> dict[str, Any]:
        model = self._open_model()
        completion = model.complete(_messages(body["messages"]))
        if inspect is not None:
            inspect(completion.text)
        return _as_chat(completion, model.name)

    def _embed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        vectors = self._open_embedder().embed([valid_unicode(str(text)) for text in texts])
        data = [{"object": "embedding", "index": n, "embedding": vector.tolist()} for n, vector in enumerate(vectors)]
        return {"object": "list", "data": data, "model": "embedder", "usage": {"prompt_tokens": 0, "total_tokens": 0}}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024  # packages send a whole episode's requests at once; with 5, the default, some are reset

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A package that failed waits for no further replies."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _messages(raw: list[Mapping[str, Any]]) -> list[Message]:
    """Turns as the package has them; content in parts is joined, and what any system said comes first."""
    turns = [(str(turn.get("role", "user")), _text(turn.get("content"))) for turn in raw]
    said = "\n\n".join(text for role, text in turns if role in ("system", "developer"))
    messages = [Message("system", said)] if said else []
    for role, text in turns:
        if role not in ("system", "developer"):
            messages.append(Message("assistant" if role == "assistant" else "user", text))
    return messages


def _text(content: object) -> str:
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return valid_unicode(str(content or ""))


def _as_chat(completion: Completion, model: str) -> dict[str, Any]:
    tokens = completion.prompt_tokens + completion.completion_tokens
    return {
        "id": "chatcmpl",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": completion.finish_reason,
                "message": {"role": "assistant", "content": completion.text},
            }
        ],
        "usage": {
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
            "total_tokens": tokens,
        },
    }


def _handler_of(proxy: ModelProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            content = self.rfile.read(min(length, MAX_BODY))
            key = self.headers.get("Authorization", "").encode("utf-8", "replace")
            if not secrets.compare_digest(key, f"Bearer {proxy.key}".encode("ascii")):
                self._send(401, {"error": {"message": "another key is needed"}})
                return
            try:
                body = json.loads(content)
            except (ValueError, RecursionError) as error:
                self._send(400, {"error": {"message": f"not a request: {error}"}})
                return
            try:
                reply = proxy.answer(self.path, body)
            except Exception as error:  # whoever serves remembers it, and tells
                self._send(500, {"error": {"message": str(error)}})
            else:
                self._send(200 if reply else 404, reply or {"error": {"message": "nothing here"}})

        def _send(self, status: int, body: Mapping[str, Any]) -> None:
            content = json.dumps(body).encode("ascii")
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            """Say nothing: the ledger has it all."""

    return Handler
