"""BM25 held to two independent implementations, and to its promises at the edges."""

import math
from pathlib import Path

import bm25s
import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from mesa_pipeline.artifacts import decode_arrays, dump_json, encode_arrays
from mesa_pipeline.config import Bm25Settings, Settings
from mesa_pipeline.datasets import ama_bench
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.structures.records import serialize_step

OKAPI = Bm25Settings(variant="okapi", k1=1.5, b=0.75, epsilon=0.25, tokenizer="whitespace")
LUCENE = OKAPI.model_copy(update={"variant": "lucene"})


def random_texts(generator: np.random.Generator, count: int) -> list[str]:
    vocabulary = np.array([f"w{number}" for number in range(40)])
    shares = 1 / np.arange(1, 41)
    lengths = generator.integers(0, 60, count)
    return [" ".join(generator.choice(vocabulary, length, p=shares / shares.sum())) for length in lengths]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.0), (2.0, 0.99)])
def test_okapi_equals_rank_bm25_on_random_texts(seed: int, k1: float, b: float) -> None:
    generator = np.random.default_rng(seed)
    texts = [*random_texts(generator, 25), "w0"]
    reference = BM25Okapi([text.split() for text in texts], k1=k1, b=b)
    index = Bm25Index.build(texts, OKAPI.model_copy(update={"k1": k1, "b": b}))
    for query in [*random_texts(generator, 10), "w0 w0 unknown", ""]:
        np.testing.assert_allclose(index.scores(query), reference.get_scores(query.split()), rtol=0, atol=1e-9)


def test_okapi_equals_rank_bm25_on_trajectories(dev_data: Path, settings: Settings) -> None:
    path = dev_data / "ama_bench" / "open_end_qa_set.jsonl"
    episodes = ama_bench.load(path, settings.datasets, False).episodes
    for episode in episodes[:: len(episodes) // 6]:
        texts = [serialize_step(step).text.lower() for step in episode.trajectory.steps]
        reference = BM25Okapi([text.split() for text in texts])
        index = Bm25Index.build(texts, OKAPI)
        for question in episode.questions:
            expected = reference.get_scores(question.text.lower().split())
            np.testing.assert_allclose(index.scores(question.text), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_lucene_equals_bm25s(seed: int) -> None:
    generator = np.random.default_rng(seed)
    texts = [*random_texts(generator, 25), "w0"]
    reference = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    reference.index([text.split() for text in texts], show_progress=False)
    index = Bm25Index.build(texts, LUCENE)
    for query in random_texts(generator, 10):
        terms = [term for term in query.split() if term in reference.vocab_dict]
        expected = reference.get_scores(terms) if terms else np.zeros(len(texts))
        np.testing.assert_allclose(index.scores(query), expected, rtol=1e-5, atol=1e-5)


def test_a_hand_worked_score() -> None:
    index = Bm25Index.build(["red key", "red door", "blue door blue"], LUCENE)
    length_norm = 1.5 * (0.25 + 0.75 * 2 / (7 / 3))
    expected = math.log(1 + 2.5 / 1.5) * 1 / (1 + length_norm)
    assert index.scores("key") == pytest.approx([expected, 0, 0])


def test_equal_scores_stand_in_document_order() -> None:
    index = Bm25Index.build(["x", "same text", "same text", "y", "same text"], LUCENE)
    assert [match.position for match in index.search("same", 5)] == [1, 2, 4, 0, 3]
    assert [match.position for match in index.search("nothing", 2)] == [0, 1]


@pytest.mark.parametrize("bm25", [OKAPI, LUCENE])
def test_no_texts_and_empty_texts_are_searched_without_fuss(bm25: Bm25Settings) -> None:
    assert Bm25Index.build([], bm25).search("anything", 3) == []
    assert [match.score for match in Bm25Index.build(["", ""], bm25).search("anything", 3)] == [0.0, 0.0]


@pytest.mark.parametrize("bm25", [OKAPI, LUCENE])
def test_an_index_survives_json_and_npz(bm25: Bm25Settings) -> None:
    texts = ["red \ud800 key", "\x00 שלום", "red"]
    index = Bm25Index.build(texts, bm25)
    arrays = encode_arrays(index.arrays)
    restored = Bm25Index.restore(index.data, decode_arrays(arrays), bm25)
    assert (dump_json(restored.data), encode_arrays(restored.arrays)) == (dump_json(index.data), arrays)
    assert restored.search("red \ud800", 3) == index.search("red \ud800", 3)


def test_an_index_of_another_tokenizer_is_refused() -> None:
    index = Bm25Index.build(["red key"], OKAPI)
    with pytest.raises(ArtifactError, match=r"whitespace.*words"):
        Bm25Index.restore(index.data, index.arrays, OKAPI.model_copy(update={"tokenizer": "words"}))
