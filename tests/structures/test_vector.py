from collections.abc import Sequence

import numpy as np
import pytest

from mesa_pipeline.artifacts import decode_arrays, dump_json, encode_arrays
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.llm.local import SentenceTransformerEmbedder
from mesa_pipeline.structures.base import StoredMemory, StructureContext
from mesa_pipeline.structures.vector import VectorMemory
from mesa_pipeline.types import Step, Trajectory

VOCABULARY = ("key", "door", "lamp", "box")


class CountingEmbedder:
    """A fake: counts of four words, normalised; it records its calls."""

    def __init__(self, name: str = "counts") -> None:
        self.name = name
        self.dimensions = len(VOCABULARY)
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(list(texts))
        counts = np.array([[text.lower().split().count(word) for word in VOCABULARY] for text in texts], dtype=np.float32)
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


TRAJECTORY = Trajectory(
    "t",
    "find the key",
    (
        Step(0, "open door", "a lamp and a box"),
        Step(1, "take key", "you hold the key"),
        Step(2, "", ""),
        Step(3, "open box", "the box holds a lamp , a lamp , a lamp"),
        Step(7, "use key", "the door opens"),
    ),
)


def structure(embedder: CountingEmbedder, top_k: int = 2, max_chars: int = 8000) -> VectorMemory:
    return VectorMemory(lambda: embedder, top_k, max_chars)


def test_items_are_step_records_in_order_of_similarity():
    memory = structure(CountingEmbedder())
    evidence = memory.retrieve(memory.build(TRAJECTORY), "which key")
    assert [item.steps for item in evidence.items] == [(1,), (7,)]
    assert evidence.items[0].text == "Step 1\nAction: take key\nObservation: you hold the key"
    assert all(item.is_record for item in evidence.items)
    assert evidence.items[0].score == pytest.approx(1.0)
    assert evidence.items[1].score == pytest.approx(2**-0.5)


def test_the_questions_of_an_episode_are_one_batch_and_answer_as_alone():
    embedder = CountingEmbedder()
    memory = structure(embedder)
    store = memory.build(TRAJECTORY)
    together = memory.retrieve_many(store, ["which key", "a lamp ?", ""])
    assert len(embedder.calls) == 2
    assert together == [memory.retrieve(store, question) for question in ("which key", "a lamp ?", "")]


def test_a_question_without_a_vector_still_gets_the_first_steps():
    memory = structure(CountingEmbedder())
    assert [item.steps for item in memory.retrieve(memory.build(TRAJECTORY), "").items] == [(0,), (1,)]


def test_an_empty_trajectory_asks_no_model():
    embedder = CountingEmbedder()
    memory = structure(embedder)
    assert memory.retrieve(memory.build(Trajectory("e", "", ())), "key").is_empty
    assert embedder.calls == []


def test_long_steps_are_embedded_whole_and_clipped_in_evidence():
    embedder = CountingEmbedder()
    memory = structure(embedder, top_k=1, max_chars=200)
    long = Trajectory("l", "", (Step(0, "look", "lamp " * 1000 + "key"),))
    evidence = memory.retrieve(memory.build(long), "key")
    assert evidence.truncated
    assert len(evidence.items[0].text) <= 200
    assert embedder.calls[0][0].endswith("key")


def test_the_store_survives_its_encoding():
    memory = structure(CountingEmbedder())
    store = memory.build(TRAJECTORY)
    stored = memory.encode(store)
    dump_json(stored.payload)
    again = memory.decode(StoredMemory(stored.payload, decode_arrays(encode_arrays(stored.arrays))))
    assert memory.retrieve(again, "a lamp ?") == memory.retrieve(store, "a lamp ?")


def test_another_embedder_is_refused_and_both_are_named():
    made, other = structure(CountingEmbedder("first")), structure(CountingEmbedder("second"))
    store = made.build(TRAJECTORY)
    for refused in (lambda: other.decode(made.encode(store)), lambda: other.retrieve(store, "key")):
        with pytest.raises(ArtifactError, match=r"'first'.*'second'"):
            refused()


def test_only_the_embedder_makes_a_memory_stale():
    few, many = structure(CountingEmbedder(), top_k=1), structure(CountingEmbedder(), top_k=9, max_chars=100)
    assert few.build_identity() == many.build_identity()
    assert few.retrieve_identity() != many.retrieve_identity()
    assert few.build_identity() != structure(CountingEmbedder("other")).build_identity()


def test_the_real_model_finds_the_step_that_means_the_same(settings):
    embedder = SentenceTransformerEmbedder(settings.llm.embedder, settings.llm.embedder_batch_size)
    memory = VectorMemory.create(StructureContext(settings, lambda: embedder))
    steps = (
        Step(0, "search", "flights from Oslo to Rome cost 120 euros"),
        Step(1, "type", "the form asks for a postal address"),
        Step(2, "run tests", "AssertionError: expected 3 but got 4"),
    )
    found = memory.retrieve(memory.build(Trajectory("r", "", steps)), "Which unit test failed?")
    assert found.items[0].steps == (2,)
