"""One job over one connection: frames out, one frame back, before a deadline and within a size."""

import socket
import time
from collections.abc import Sequence

from mesa_pipeline.policies.sandbox.job import LENGTH
from mesa_pipeline.policies.sandbox.replies import failure


def exchange(job: socket.socket, frames: Sequence[bytes], deadline: float, max_bytes: int) -> bytes:
    """Send a job and receive its one reply.

    Args:
        job: Connection to the child.
        frames: Header, source and values.
        deadline: In ``time.monotonic`` seconds.
        max_bytes: Longest reply accepted; a longer one is not read.

    Raises:
        TimeoutError: The reply was not complete, and the connection closed, before the deadline.
        ConnectionError: The connection closed before the reply was complete.
        SandboxFailure: The reply is too long, or there is more than one.
    """
    for frame in frames:
        _await(job, deadline)
        job.sendall(LENGTH.pack(len(frame)))
        job.sendall(frame)
    (size,) = LENGTH.unpack(_receive(job, LENGTH.size, deadline))
    if size > max_bytes:
        raise failure(f"the reply has {size:,} bytes; at most {max_bytes:,} are read")
    reply = _receive(job, size, deadline)
    _await(job, deadline)
    if job.recv(1):
        raise failure("the worker sent more than one reply")
    return reply


def _receive(job: socket.socket, size: int, deadline: float) -> bytes:
    buffer = bytearray(size)
    rest = memoryview(buffer)
    while rest:
        _await(job, deadline)
        received = job.recv_into(rest)
        if not received:
            raise ConnectionResetError("the worker closed the connection")
        rest = rest[received:]
    return bytes(buffer)


def _await(job: socket.socket, deadline: float) -> None:
    """Bound the next call on the connection by what is left of the time."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    job.settimeout(left)
