import threading
import time
from concurrent.futures import ThreadPoolExecutor

from mesa_pipeline.llm import Message
from mesa_pipeline.llm.concurrency import map_concurrently
from mesa_pipeline.llm.metering import Cost, MeteredEmbedder, in_turn, metered, metered_chat, note
from mesa_pipeline.llm.scripted import ScriptedModel
from tests.contracts.test_structures import HashingEmbedder


class Words:
    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def chat(words: int = 2):
    return metered_chat(lambda role, schema, max_tokens: ScriptedModel(lambda messages, seed: "w " * words))("recall")


def test_replies_and_texts_are_counted_while_the_meter_runs():
    model, embedder = chat(), MeteredEmbedder(HashingEmbedder(), Words())
    model.complete([Message("user", "not counted")])
    with metered() as meter:
        model.complete([Message("user", "one two three")])
        embedder.embed(["a b", "c"])
        note("odd replies", 2)
        note("odd replies")
    model.complete([Message("user", "nor this")])
    counted = meter.cost
    assert counted.seconds > 0
    assert (counted.calls, counted.prompt_tokens, counted.completion_tokens) == (1, 3, 2)
    assert (counted.embedded_texts, counted.embedded_tokens, counted.notes) == (2, 3, {"odd replies": 3})


def test_what_runs_side_by_side_is_counted_where_it_belongs():
    def work(requests: int) -> int:
        with metered() as meter:
            map_concurrently(lambda n: chat().complete([Message("user", "x")]), range(requests), limit=4)
        return meter.cost.calls

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, [1, 5, 9, 13])) == [1, 5, 9, 13]


def test_inner_meters_count_for_themselves():
    with metered() as outer:
        with metered() as inner:
            chat().complete([Message("user", "x")])
        chat().complete([Message("user", "x")])
    assert (inner.cost.calls, outer.cost.calls) == (1, 1)


def test_costs_add_up():
    assert Cost(1, 2, 3, 4, 5, 6, {"a": 1}) + Cost(1, 1, 1, 1, 1, 1, {"a": 1, "b": 2}) == Cost(
        2, 3, 4, 5, 6, 7, {"a": 2, "b": 2}
    )


def test_waiting_for_ones_turn_is_no_cost():
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(1.0, lock.release).start()
    started = time.perf_counter()
    with metered() as meter, in_turn(lock):
        assert meter.cost.seconds < (time.perf_counter() - started) / 2
