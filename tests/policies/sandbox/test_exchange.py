import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from mesa_pipeline.errors import SandboxFailure
from mesa_pipeline.policies.sandbox.exchange import exchange


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def soon(seconds: float = 30.0) -> float:
    return time.monotonic() + seconds


def test_frames_go_out_with_their_lengths_and_one_comes_back(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    theirs.sendall(struct.pack("!I", 3) + b"yes")
    theirs.shutdown(socket.SHUT_WR)
    assert exchange(ours, [b"ab", b""], soon(), 3) == b"yes"
    assert theirs.recv(100) == b"\0\0\0\2ab\0\0\0\0"


def test_a_longer_reply_is_refused_before_it_is_read(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    theirs.sendall(struct.pack("!I", 4) + b"more")
    with pytest.raises(SandboxFailure, match="the reply has 4 bytes; at most 3 are read"):
        exchange(ours, [], soon(), 3)
    assert ours.recv(100) == b"more"


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\5", b"\0\0\0\5four"])
def test_a_reply_cut_short_is_a_lost_connection(ends: tuple[socket.socket, socket.socket], sent: bytes) -> None:
    ours, theirs = ends
    theirs.sendall(sent)
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionError):
        exchange(ours, [], soon(), 10)


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\5four", b"\0\0\0\1x"])
def test_whatever_is_missing_at_the_deadline_even_the_end_is_too_late(
    ends: tuple[socket.socket, socket.socket], sent: bytes
) -> None:
    ours, theirs = ends
    theirs.sendall(sent)
    with pytest.raises(TimeoutError):
        exchange(ours, [], soon(0.05), 10)


def test_a_reader_that_does_not_read_meets_the_deadline_too(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(TimeoutError):
        exchange(ends[0], [b"x" * 10_000_000], soon(0.05), 10)


def test_a_reply_dripping_in_does_not_extend_the_deadline(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    stop = threading.Event()

    def drip() -> None:
        theirs.sendall(struct.pack("!I", 1_000_000))
        while not stop.wait(0.01):
            theirs.sendall(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        exchange(ours, [], soon(0.2), 2_000_000)
    stop.set()
    dripping.join()
    assert time.monotonic() - started < 20
