"""Whether the client keeps as many requests in flight as it may: seconds per 1,000 calls to an endpoint that takes 50 ms.

Run ``python -m benchmarks.endpoint_throughput`` (``--calls`` for more). The server runs in a process of its own. Prints a
Markdown table: the ideal is 1,000 calls of 50 ms, N at a time; the bare client sends the same requests with the ``openai``
library, without cache, ledger, deadline or retries; a replay is the second time, from the cache.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from openai import OpenAI

from mesa_pipeline.config import load_settings
from mesa_pipeline.llm.cache import ReplyCache
from mesa_pipeline.llm.endpoint import Endpoint
from mesa_pipeline.llm.ledger import Ledger
from tests.llm.misbehaving_server import MisbehavingServer

LATENCY = 0.05
PER = 1_000


@dataclass(frozen=True)
class Row:
    """Seconds per 1,000 calls with so many in flight."""

    in_flight: int
    reached: int
    client: float
    bare: float
    replay: float

    @property
    def ideal(self) -> float:
        return PER * LATENCY / self.in_flight

    def __str__(self) -> str:
        figures = (self.ideal, self.client, self.client / self.ideal, self.bare, self.client / self.bare, self.replay)
        return f"| {self.in_flight} | {self.reached} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |"


def _serve(pipe: Connection) -> None:
    """Sends its address, and for each message received the most requests that were in flight since the last one."""
    with MisbehavingServer(latency=LATENCY) as server:
        pipe.send(server.base_url)
        while pipe.recv() is not None:
            pipe.send(server.most_in_flight)
            server.most_in_flight = 0


@contextmanager
def running_server() -> Iterator[tuple[str, Connection]]:
    """The server's address, and the pipe to it."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv(), ours
    finally:
        ours.send(None)
        process.join()


def request(number: int) -> dict[str, Any]:
    """A request like no other."""
    return {"model": "m", "messages": [{"role": "user", "content": f"question {number}"}], "max_tokens": 8}


def seconds(call: Callable[[int], object], calls: int, in_flight: int) -> float:
    """Seconds per 1,000 calls."""
    with ThreadPoolExecutor(in_flight) as pool:
        started = time.perf_counter()
        list(pool.map(call, range(calls)))
        return (time.perf_counter() - started) / calls * PER


def measure(base_url: str, pipe: Connection, in_flight: int, calls: int) -> Row:
    """One row of the table."""
    settings = load_settings(environment={}).llm.chat.model_copy(update={"base_url": base_url, "max_concurrency": in_flight})
    bare = OpenAI(base_url=base_url, api_key="none", max_retries=0)
    with tempfile.TemporaryDirectory() as folder:
        endpoint = Endpoint(settings, ReplyCache(Path(folder, "replies.sqlite")), Ledger(Path(folder, "ledger.sqlite")))
        endpoint.complete(request(-1), "answer")
        bare.chat.completions.create(**request(-1))
        pipe.send("begin")
        pipe.recv()
        ours = seconds(lambda number: endpoint.complete(request(number), "answer"), calls, in_flight)
        pipe.send("how many?")
        reached = pipe.recv()
        replay = seconds(lambda number: endpoint.complete(request(number), "answer"), calls, in_flight)
    theirs = seconds(lambda number: bare.chat.completions.create(**request(number)), calls, in_flight)
    return Row(in_flight, reached, ours, theirs, replay)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200)
    arguments = parser.parse_args()
    print("| in flight | reached | ideal s | client s | client/ideal | bare client s | client/bare | replay s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with running_server() as (base_url, pipe):
        for in_flight in (1, 4, 16):
            print(measure(base_url, pipe, in_flight, max(arguments.calls, in_flight)), flush=True)


if __name__ == "__main__":
    main()
