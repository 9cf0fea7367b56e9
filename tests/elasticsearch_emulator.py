"""Elasticsearch as far as it can be had here: an emulator, and what stands between it and a client in tests.

The emulator (``noida-db``) speaks the protocol and calls itself 8.15.3. It keeps 9 significant bits of a feature, shows
refreshed documents only, and limits results and terms, all as Elasticsearch does. It does not refuse a client of another major
version, leave out of a document what its mapping excludes, or limit the clauses of a query. What passes here is no proof for a
real server: see the ``real_elasticsearch`` tests.
"""

import http.client
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

START_SECONDS = 60.0
ATTEMPTS = 5


@contextmanager
def running_emulator(folder: Path) -> Iterator[str]:
    """An emulator on a free port of the loopback, as long as the context lasts; gives its address."""
    binary = Path(str(files("noida_db"))) / "noida-db"
    binary.chmod(0o755)
    for _ in range(ATTEMPTS):
        port = _free_port()
        command = [
            str(binary),
            "start",
            "--data-dir",
            str(folder),
            "--only",
            "elasticsearch",
            "--elasticsearch-port",
            str(port),
        ]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            if _answers(port, process):
                yield f"http://127.0.0.1:{port}"
                return
        finally:
            process.terminate()
            process.wait(START_SECONDS)
    raise AssertionError(f"the emulator did not start: {(folder / 'log').read_text(errors='replace')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int, process: "subprocess.Popen[bytes]") -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            time.sleep(0.02)
    return False


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        """Its JSON."""
        return json.loads(self.content)

    @property
    def lines(self) -> list[Any]:
        """The JSON of each line, of a bulk request."""
        return [json.loads(line) for line in self.content.splitlines()]


@dataclass(frozen=True)
class Reply:
    """A status and a body of JSON."""

    status: int
    body: Any
    product: str | None = "Elasticsearch"


@dataclass
class Exchange:
    """A request that waits for its reply, and the means to give one."""

    asked: Asked
    handler: BaseHTTPRequestHandler
    upstream: str
    closing: threading.Event

    def forward(self, content: bytes | None = None) -> Reply:
        """What the emulator replies, to this or another body."""
        connection = http.client.HTTPConnection(self.upstream, timeout=60)
        headers = {name: value for name, value in self.asked.headers.items() if name.lower() in {"content-type", "accept"}}
        connection.request(self.asked.method, self.asked.path, self.asked.content if content is None else content, headers)
        response = connection.getresponse()
        body = json.loads(response.read() or b"null")
        connection.close()
        return Reply(response.status, body)

    def send(self, reply: Reply, length: int | None = None) -> None:
        """Send a reply; with ``length`` more is promised than is sent."""
        content = json.dumps(reply.body).encode()
        self.handler.send_response(reply.status)
        self.handler.send_header("Content-Type", "application/vnd.elasticsearch+json;compatible-with=9")
        self.handler.send_header("Content-Length", str(len(content) if length is None else length))
        if reply.product:
            self.handler.send_header("X-Elastic-Product", reply.product)
        self.handler.end_headers()
        self.handler.wfile.write(content)

    def cut(self) -> None:
        """Close the connection, whatever was promised."""
        self.handler.close_connection = True
        self.handler.connection.shutdown(socket.SHUT_RDWR)


Act = Callable[[Exchange], None]


def well(exchange: Exchange) -> None:
    """As the emulator replies."""
    exchange.send(exchange.forward())


def refuse(status: int, reason: str = "no", kind: str = "some_exception") -> Act:
    """An error, as Elasticsearch words it."""
    error = {"type": kind, "reason": reason}
    return lambda exchange: exchange.send(Reply(status, {"error": {"root_cause": [error], **error}, "status": status}))


def cut_at_once(exchange: Exchange) -> None:
    """The connection is closed without a word, and nothing done."""
    exchange.cut()


def cut_reply(exchange: Exchange) -> None:
    """What was asked is done, and the connection closed in the middle of the reply."""
    exchange.send(exchange.forward(), length=10**6)
    exchange.cut()


def hang(exchange: Exchange) -> None:
    """Never a reply."""
    exchange.closing.wait()
    exchange.cut()


@dataclass
class Proxy:
    """Passes requests on to the emulator, unless told otherwise; as a context manager it listens on a port of the loopback.

    Attributes:
        emulator: Address of the emulator.
        asked: Every request, in order of arrival.
        acts: What to do instead with the next requests whose path holds a fragment, in order; the last stays in force if
            ``lasting`` names the fragment.
    """

    emulator: str
    asked: list[Asked] = field(default_factory=list)
    acts: dict[str, list[Act]] = field(default_factory=dict)
    lasting: set[str] = field(default_factory=set)
    _closing: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> "Proxy":
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def to(self, fragment: str) -> list[Asked]:
        """The requests whose path holds a fragment."""
        return [asked for asked in self.asked if fragment in asked.path]

    def play(self, asked: Asked, handler: BaseHTTPRequestHandler) -> None:
        with self._lock:
            self.asked.append(asked)
            act = self._act(asked)
        try:
            act(Exchange(asked, handler, self.emulator.removeprefix("http://"), self._closing))
        except OSError:  # the client left
            handler.close_connection = True

    def _act(self, asked: Asked) -> Act:
        for fragment, acts in self.acts.items():
            if fragment in asked.path and acts:
                return acts[0] if fragment in self.lasting and len(acts) == 1 else acts.pop(0)
        return well


def _handler_of(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _play(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            proxy.play(Asked(self.command, self.path, dict(self.headers), content), self)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _play

        def log_message(self, *arguments: object) -> None:
            """Silence."""

    return Handler
