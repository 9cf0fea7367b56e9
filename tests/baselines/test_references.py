"""BM25 and flat dense retrieval beside the packages that others use for them, on the development data."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from mesa_pipeline.baselines import BASELINES, BaselineContext
from mesa_pipeline.config import Settings
from mesa_pipeline.datasets import ama_bench, locomo
from mesa_pipeline.llm.tokens import QwenTokenCounter
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Episode
from tests.contracts.test_structures import HashingEmbedder

faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")
CHUNK, TOP = 800, 5


class WideHashingEmbedder(HashingEmbedder):
    """So many dimensions that scores seldom tie, as those of a model."""

    name = "hashing-512"
    dimensions = 512

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
                vectors[row, int.from_bytes(digest[:2], "big") % self.dimensions] += 1.0
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, norms, out=vectors, where=norms > 0)


@pytest.fixture(scope="module")
def episodes(dev_data: Path, settings: Settings) -> tuple[Episode, ...]:
    """Of AMA-Bench some episodes with all their questions, of LoCoMo a conversation with some of its questions."""
    every = ama_bench.load(dev_data / "ama_bench" / "open_end_qa_set.jsonl", settings.datasets, False).episodes
    talk, *_ = locomo.load(dev_data / "locomo" / "locomo5.json", settings.datasets, False).episodes
    return *every[:: len(every) // 8], replace(talk, questions=talk.questions[::10])


def test_bm25_is_rank_bm25_over_pieces(episodes: tuple[Episode, ...], settings: Settings) -> None:
    bm25 = BASELINES["bm25"].create(BaselineContext(settings, HashingEmbedder, QwenTokenCounter(settings.llm.tokenizer)))
    for episode in episodes:
        records = [serialize_step(step).text for step in episode.trajectory.steps]
        texts = [record[n : n + CHUNK] for record in records for n in range(0, len(record), CHUNK)]
        reference = BM25Okapi([text.lower().split() for text in texts])
        memory = bm25.build(episode.trajectory)
        assert list(memory.texts) == texts
        for question in episode.questions:
            expected = reference.get_scores(question.text.lower().split())
            found = bm25.retrieve(memory, question.text).items
            best = np.argsort(-np.round(expected, 9), kind="stable")[:TOP]
            assert [item.text for item in found] == [texts[n] for n in best]
            np.testing.assert_allclose([i.score for i in found], np.sort(expected)[::-1][:TOP], rtol=0, atol=1e-9)


def test_flat_dense_is_a_flat_faiss_index(episodes: tuple[Episode, ...], settings: Settings) -> None:
    embedder = WideHashingEmbedder()
    counter = QwenTokenCounter(settings.llm.tokenizer)
    dense = BASELINES["flat_dense"].create(BaselineContext(settings, lambda: embedder, counter))
    untied = 0
    for episode in episodes:
        of_talk, limits = episode.trajectory.kind == "dialogue", settings.baselines.flat_dense
        instruction, top = (limits.dialogue_instruction, 2 * TOP) if of_talk else ("", TOP)
        memory = dense.build(episode.trajectory)
        index = faiss.IndexFlatIP(embedder.dimensions)
        index.add(memory.vectors)
        for question in episode.questions:
            scores, positions = index.search(embedder.embed([instruction + question.text]), top + 1)
            found = dense.retrieve(memory, question.text).items
            np.testing.assert_allclose([item.score for item in found], scores[0][:top], rtol=0, atol=2e-6)
            if (np.diff(scores[0]) < -1e-5).all():
                untied += 1
                assert [item.text for item in found] == [memory.texts[n] for n in positions[0][:top]]
    assert untied > 10
