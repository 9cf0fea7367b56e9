"""A limit on how long one request may take in all: a server that drips a byte now and then never trips a read timeout."""

import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2

CONNECT_SECONDS = 30.0
"""Longest wait for a connection: a busy server lets us in at once and then makes us wait."""


class DeadlineTransport(httpx2.HTTPTransport):
    """Sends requests like ``HTTPTransport``, and gives up on a reply that is not whole after ``seconds``.

    Args:
        seconds: From the first byte sent to the last one received.
        connections: Most connections at a time.
    """

    def __init__(self, seconds: float, connections: int) -> None:
        super().__init__()
        self._seconds = seconds
        self._deadline = _Deadline()
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            max_connections=connections,
            network_backend=_DeadlineBackend(self._deadline),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._deadline.at = time.monotonic() + self._seconds
        return super().handle_request(request)


class _Deadline(threading.local):
    """When the request of this thread must be done; the thread that sends a request reads its reply, too."""

    at = float("inf")

    def bound(self, seconds: float | None) -> float:
        """The seconds left, ``seconds`` at most.

        Raises:
            ReadTimeout: None are left.
        """
        left = self.at - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the reply took too long in all")
        return left if seconds is None else min(seconds, left)


class _DeadlineStream(httpcore2.NetworkStream):
    """A connection whose every read and write ends by the deadline."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: _Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.bound(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.bound(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        secured = self._stream.start_tls(ssl_context, server_hostname, self._deadline.bound(timeout))
        return _DeadlineStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _DeadlineBackend(httpcore2.NetworkBackend):
    """Opens connections that know the deadline."""

    def __init__(self, deadline: _Deadline) -> None:
        self._network = httpcore2.SyncBackend()
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        stream = self._network.connect_tcp(host, port, self._deadline.bound(timeout), local_address, socket_options)
        return _DeadlineStream(stream, self._deadline)
