"""The way to the server: one client a process, patience with a busy server, and what went wrong in one line."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Any, Self
from urllib.parse import SplitResult, unquote, urlsplit

from elastic_transport import (
    ApiError,
    BaseNode,
    ConnectionError,
    ConnectionTimeout,
    NodePool,
    Transport,
    TransportApiResponse,
    TransportError,
)
from elasticsearch import Elasticsearch, UnsupportedProductError

from mesa_pipeline.config import ElasticsearchSettings
from mesa_pipeline.errors import ConfigError, MesaError, MissingDependency, Unreachable, WorkFailed

RETRIED_STATUS = frozenset({429, 502, 503, 504})
REFUSED_STATUS = frozenset({401, 403})
MAX_SAID_CHARS = 400
REMEDY = "start it or correct stores.elasticsearch.url, or go on without it: stores.texts=process"
OTHER_MAJOR = "media_type_header_exception"


class OneNode(NodePool):
    """There is no other node to turn to, so none is set aside, nor a warning written each time that one would be."""

    def mark_dead(self, node: BaseNode, _now: float | None = None) -> None:
        """Leave the node where it is."""


class PatientTransport(Transport):
    """Waits between attempts, twice as long each time; the library's own waits after lost connections only, not after 429."""

    def perform_request(self, *arguments: Any, **options: Any) -> TransportApiResponse:
        retries: int = options.pop("max_retries")
        pause: float = options.pop("retry_backoff_base")
        longest: float = options.pop("retry_backoff_cap")
        retried = options.get("retry_on_status", RETRIED_STATUS)
        for attempt in count():
            try:
                response = super().perform_request(*arguments, max_retries=0, **options)
                if response.meta.status not in retried or attempt >= retries:
                    return response
            except (ConnectionError, ConnectionTimeout):
                if attempt >= retries:
                    raise
            time.sleep(min(pause * 2**attempt, longest))
        raise AssertionError  # counting never ends


@dataclass(frozen=True)
class Server:
    """Where the server is and how it lets us in; nothing shows the secrets.

    Attributes:
        url: Its address, without the user.
        login: What the client sends to be let in, as its own options.
        secrets: What no message may hold.
    """

    url: str
    login: Mapping[str, Any]
    secrets: tuple[str, ...]

    @classmethod
    def at(cls, url: str, key: str | None) -> Self:
        """Read an address, which may hold a user and password; a key is preferred.

        Raises:
            ConfigError: It is no address.
        """
        parts = _split(url)
        host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
        plain = f"{parts.scheme}://{host}:{parts.port}{parts.path.rstrip('/')}"
        if key:
            return cls(plain, {"api_key": key}, _secrets(key, parts.password))
        if parts.username is None:
            return cls(plain, {}, ())
        login = unquote(parts.username), unquote(parts.password or "")
        return cls(plain, {"basic_auth": login}, _secrets(login[1], parts.password))

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    def redact(self, message: str) -> str:
        """The message, without secrets and not too long."""
        for secret in self.secrets:
            message = message.replace(secret, "***")
        return message if len(message) <= MAX_SAID_CHARS else f"{message[:MAX_SAID_CHARS]}..."


class Connection:
    """Hands out clients of one server. Threads share one; a process that was forked makes its own."""

    def __init__(self, settings: ElasticsearchSettings, key: str | None) -> None:
        self._settings = settings
        self._server = Server.at(settings.url, key)
        self._lock = Lock()
        self._clients: dict[int, Elasticsearch] = {}

    @property
    def url(self) -> str:
        """Address of the server, without secrets."""
        return self._server.url

    @contextmanager
    def client(self) -> Iterator[Elasticsearch]:
        """A client to use; what the library raises meanwhile becomes an error of ours.

        Raises:
            MissingDependency: The server cannot be reached, is busy for too long, does not let us in, or is something else.
            WorkFailed: It refused the request.
        """
        try:
            yield self._client()
        except (TransportError, ApiError) as error:
            raise self._meant(error) from None

    def redact(self, message: str) -> str:
        """A message that quotes the server, fit to be shown."""
        return self._server.redact(message)

    def _client(self) -> Elasticsearch:
        process = os.getpid()
        with self._lock:
            if process not in self._clients:
                self._clients = {process: self._open()}
            return self._clients[process]

    def _open(self) -> Elasticsearch:
        settings = self._settings
        return Elasticsearch(
            self._server.url,
            transport_class=PatientTransport,
            node_pool_class=OneNode,
            request_timeout=settings.timeout_seconds,
            max_retries=settings.max_attempts - 1,
            retry_on_status=RETRIED_STATUS,
            retry_backoff_base=settings.backoff_seconds,
            retry_backoff_cap=settings.max_backoff_seconds,
            **self._server.login,
        )

    def _meant(self, error: TransportError | ApiError) -> MesaError:
        where, said = f"Elasticsearch at {self.url}", self.redact(str(error))
        if isinstance(error, UnsupportedProductError):
            return MissingDependency(f"what answers at {self.url} is not Elasticsearch; {REMEDY}")
        if isinstance(error, ApiError):
            return self._refusal(error.meta.status, where, said)
        unreached = isinstance(error, ConnectionError | ConnectionTimeout)
        trouble = "cannot be reached" if unreached else "gave a reply that cannot be read"
        return (Unreachable if unreached else MissingDependency)(f"{where} {trouble} ({said}); {REMEDY}")

    def _refusal(self, status: int, where: str, said: str) -> MesaError:
        if status in REFUSED_STATUS:
            return MissingDependency(f"{where} does not let us in ({said}); put a key into {self._settings.key_variable}")
        if OTHER_MAJOR in said:
            return MissingDependency(f"{where} is older than version 9, which the client needs ({said}); {REMEDY}")
        if status in RETRIED_STATUS:
            return Unreachable(f"{where} is busy, also after {self._settings.max_attempts} attempts ({said}); try later")
        return WorkFailed(f"{where} refused a request ({said})")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        complete = parts.scheme in {"http", "https"} and parts.hostname and parts.port
    except ValueError:
        complete = False
    if not complete:
        raise ConfigError(
            "stores.elasticsearch.url must be an address with scheme, host and port, such as http://127.0.0.1:9200"
        )
    return parts


def _secrets(*secrets: str | None) -> tuple[str, ...]:
    """The longest first, so that none is left in part."""
    return tuple(sorted({secret for secret in secrets if secret}, key=lambda secret: (-len(secret), secret)))
