"""Fixtures every test may use."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.services.postgres import EmbeddedPostgres, unavailable
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.sweep import sweep
from tests.elasticsearch_emulator import running_emulator
from tests.pipeline import SMALL, conclude, copy_of, prepare

REPOSITORY = Path(__file__).resolve().parent.parent
# A busy machine is no fault of the code: properties are tested, not how fast.
hypothesis_settings.register_profile("untimed", deadline=None)
hypothesis_settings.load_profile("untimed")


@pytest.fixture(scope="session")
def settings() -> Settings:
    """The defaults of params.yaml, whatever the environment says."""
    return load_settings(REPOSITORY / "params.yaml", environment={})


@pytest.fixture(scope="session")
def dev_data() -> Path:
    """The development data, which is not part of the repository."""
    path = Path(os.environ.get("MESA_DEV_DATA", REPOSITORY.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"development data not found at {path}; set MESA_DEV_DATA to its folder")
    return path


MakeMatrix = Callable[..., OutcomeMatrix]


@pytest.fixture(scope="session")
def make_matrix() -> MakeMatrix:
    """Outcomes of questions given as ``(episode, domain, qa_type)``, with scores and tokens of shape ``(n, 31)``."""

    def make(labels: Sequence[tuple[str, str, str | None]], scores: np.ndarray, tokens: np.ndarray) -> OutcomeMatrix:
        questions = tuple(
            QuestionInfo(f"{episode}#{k}", episode, f"question {k}?", domain, "", qa_type, 10)
            for k, (episode, domain, qa_type) in enumerate(labels)
        )
        return OutcomeMatrix(questions, np.array(scores, dtype=float), np.array(tokens, dtype=float))

    return make


@pytest.fixture
def six_questions(make_matrix: MakeMatrix) -> OutcomeMatrix:
    """A table small enough to work by hand.

    A subset of k structures costs 1000 k tokens. S scores 1, 1/2, 1/2 on Game and 0 on WEB; T scores 0, 0, 1/2 on Game and
    1, 1, 1/2 on WEB; all five score 1/2 everywhere; any other subset 1/5.
    """
    labels = [("g1", "Game", "A"), ("g1", "Game", "B"), ("g2", "Game", "A")]
    labels += [("w1", "WEB", "A"), ("w1", "WEB", "B"), ("w2", "WEB", None)]
    scores = np.full((6, 31), 0.2)
    scores[:, 0] = [1.0, 0.5, 0.5, 0.0, 0.0, 0.0]
    scores[:, 1] = [0.0, 0.0, 0.5, 1.0, 1.0, 0.5]
    scores[:, 30] = 0.5
    tokens = np.tile([1000.0 * mask.bit_count() for mask in range(1, 32)], (6, 1))
    return make_matrix(labels, scores, tokens)


@pytest.fixture(scope="session")
def small_settings() -> Settings:
    return load_settings(REPOSITORY / "params.yaml", SMALL, {})


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, small_settings) -> StageContext:
    """A workspace ready to be swept; do not change it."""
    context = StageContext(Layout(tmp_path_factory.mktemp("prepared"), "synthetic"), small_settings)
    prepare(context)
    return context


@pytest.fixture(scope="session")
def finished(prepared, tmp_path_factory) -> StageContext:
    """A workspace with everything made; do not change it."""
    context = copy_of(prepared, tmp_path_factory.mktemp("finished"))
    sweep(context)
    conclude(context)
    return context


@pytest.fixture(scope="session")
def postgres(tmp_path_factory) -> Iterator[EmbeddedPostgres]:
    """A running PostgreSQL with pgvector; every test uses a database of its own in it (``ensure_database``)."""
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    hasty = {"fsync": "off"}  # a test's data need not survive the machine
    with EmbeddedPostgres(tmp_path_factory.mktemp("embedded") / "postgres", settings=hasty) as server:
        yield server


@pytest.fixture(scope="session")
def elasticsearch_emulator(tmp_path_factory) -> Iterator[str]:
    """Address of a running emulator of Elasticsearch; every test uses an index or a namespace of its own in it."""
    with running_emulator(tmp_path_factory.mktemp("elasticsearch")) as url:
        yield url
