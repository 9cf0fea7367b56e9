"""A limit on how long one request may take in all: a server that drips a byte now and then never trips a read timeout."""

import time
from collections.abc import Iterator

import httpx2


class DeadlineTransport(httpx2.HTTPTransport):
    """Sends requests like ``HTTPTransport``, and gives up on a reply that is not whole after ``seconds``."""

    def __init__(self, seconds: float, connections: int) -> None:
        super().__init__(limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections))
        self._seconds = seconds

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        deadline = time.monotonic() + self._seconds
        response = super().handle_request(request)
        response.stream = _DeadlineStream(response.stream, deadline)
        return response


class _DeadlineStream(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, deadline: float) -> None:
        assert isinstance(stream, httpx2.SyncByteStream)
        self._stream = stream
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        for part in self._stream:
            if time.monotonic() > self._deadline:
                raise httpx2.ReadTimeout("the reply took too long in all")
            yield part

    def close(self) -> None:
        self._stream.close()
