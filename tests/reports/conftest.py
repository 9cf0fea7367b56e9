"""Made-up report inputs. Nothing here was measured: scores come from a seeded generator shaped like a real sweep."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from mesa_pipeline import subsets
from mesa_pipeline.config import load_settings
from mesa_pipeline.datasets.splits import Split
from mesa_pipeline.evaluation.evaluate import (
    Evaluation,
    EvaluationKind,
    PerQuestion,
    oracle_choices,
    outcomes_of,
    random_outcomes,
)
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, LABEL_FREE_ROW, Comparison, Receipt, TestResult
from mesa_pipeline.evaluation.statistics import paired_bootstrap
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.reports import ReportInputs

DOMAINS = ("EMBODIED_AI", "Game", "OPENWORLD_QA", "SOFTWARE", "TEXT2SQL", "WEB")
CAPABILITIES = ("recall", "causal", "state-updating", "abstraction")
SECTION_TOKENS = {"S": 900, "T": 1400, "G": 450, "V": 2600, "R": 6500}
WORTH = {"S": 0.10, "T": 0.12, "G": 0.05, "V": 0.11, "R": 0.13}
LAMBDA = 1e-6
PARAMS = Path(__file__).resolve().parents[2] / "params.yaml"


def fake_matrix(
    episodes: int = 40, questions: int = 12, domains: Sequence[str] = DOMAINS, capabilities: Sequence[str | None] = CAPABILITIES
) -> OutcomeMatrix:
    """Scores in which more evidence helps at first, too much of it hurts, and domains prefer different structures."""
    generator = np.random.default_rng(7)
    infos = tuple(
        QuestionInfo(
            id=f"episode-{e}#{q}",
            episode_id=f"episode-{e}",
            text=f"question {q} of episode {e}",
            domain=domains[e % len(domains)],
            task_type="task",
            qa_type=capabilities[q % len(capabilities)],
            steps=50,
        )
        for e in range(episodes)
        for q in range(questions)
    )
    taste = {name: generator.normal(1, 0.5, 5) for name in (*dict.fromkeys(domains), *dict.fromkeys(capabilities))}
    tokens = np.zeros((len(infos), 31))
    scores = np.zeros((len(infos), 31))
    lengths = generator.lognormal(0, 0.5, (len(infos), 5)) * np.array(list(SECTION_TOKENS.values()))
    worth = np.array(list(WORTH.values()))
    for mask in subsets.ALL_SUBSETS:
        chosen = np.array([code in subsets.decode(mask) for code in subsets.STRUCTURE_CODES], dtype=float)
        tokens[:, mask - 1] = np.round(lengths @ chosen)
        for row, info in enumerate(infos):
            gain = float((worth * taste[info.domain] * taste[info.qa_type]) @ chosen)
            scores[row, mask - 1] = 0.12 + 0.6 * np.tanh(2 * gain) / 2 - 0.025 * max(chosen.sum() - 2, 0) ** 1.3
    noise = generator.normal(0, 0.12, (len(infos), 1)) + generator.normal(0, 0.05, scores.shape)
    return OutcomeMatrix(infos, np.clip(scores + noise, 0, 1), tokens)


def fake_splits(matrix: OutcomeMatrix, seeds: Sequence[int]) -> tuple[Split, ...]:
    episodes = sorted(set(matrix.episode_ids))
    found = []
    for seed in seeds:
        shuffled = [str(e) for e in np.random.default_rng(seed).permutation(episodes)]
        fifth = max(1, len(episodes) // 5)
        parts = shuffled[:fifth], shuffled[fifth : 2 * fifth], shuffled[2 * fifth :]
        found.append(Split(seed, *(tuple(sorted(part)) for part in parts)))
    return tuple(found)


def fake_test(matrix: OutcomeMatrix, split: Split, bonus: float = 0.0) -> TestResult:
    """A test in which the frozen policy looks up each domain's best subset with hindsight; ``bonus`` is added to its scores."""
    test = matrix.select(np.isin(matrix.episode_ids, split.test))
    full = _constant(test, subsets.FULL_SUBSET)
    by_domain = {
        domain: int(np.nanmean(matrix.scores[[q.domain == domain for q in matrix.questions]], axis=0).argmax()) + 1
        for domain in {question.domain for question in matrix.questions}
    }
    choices = np.array([by_domain[question.domain] for question in test.questions])
    frozen = outcomes_of(test, choices, "frozen")
    frozen = PerQuestion(frozen.scores + bonus, frozen.tokens, frozen.structures)
    best = _constant(test, int(np.nanmean(matrix.scores, axis=0).argmax()) + 1)
    rows: list[tuple[str, EvaluationKind, PerQuestion]] = [
        (FROZEN_ROW, "frozen", frozen),
        (LABEL_FREE_ROW, "frozen", best),
        ("all", "all", full),
        *((subsets.label(mask), "single", _constant(test, mask)) for mask in subsets.SINGLE_SUBSETS),
        ("best fixed", "fixed", best),
        *((f"lookup by {key} ({how})", "lookup", frozen) for key in ("domain", "capability") for how in ("raw", "shrunk")),
        ("route-to-one", "route", _constant(test, 1)),
        ("LLM zero-shot", "zero_shot", best),
        ("random", "random", random_outcomes(test)),
        ("oracle", "oracle", outcomes_of(test, oracle_choices(test, LAMBDA), "oracle")),
    ]
    comparisons = tuple(_comparison(name, kind, found, full, test) for name, kind, found in rows)
    validation: Evaluation = comparisons[0].evaluation
    chosen = {question.id: int(mask) for question, mask in zip(test.questions, choices, strict=True)}
    receipt = Receipt("0123456789abcdef" * 4, "fedcba9876543210" * 4, "2000-01-01T00:00:00+00:00")
    return TestResult("fake", split.seed, "lookup by domain (shrunk)", comparisons, chosen, validation, receipt)


def _constant(matrix: OutcomeMatrix, mask: int) -> PerQuestion:
    return outcomes_of(matrix, np.full(len(matrix), mask), subsets.label(mask))


def _comparison(name: str, kind: EvaluationKind, found: PerQuestion, full: PerQuestion, test: OutcomeMatrix) -> Comparison:
    interval = paired_bootstrap(found.scores - full.scores, test.episode_ids, 200, 0.95, 0)
    return Comparison(found.evaluation(name, kind, LAMBDA), interval)


def fake_inputs(
    matrix: OutcomeMatrix, seeds: Sequence[int] = (0, 1, 2, 3, 4), failures: Sequence[str] = (), bonus: float = 0.0
) -> ReportInputs:
    generator = np.random.default_rng(3)
    episodes = len(set(matrix.episode_ids))
    splits = fake_splits(matrix, seeds)
    return ReportInputs(
        dataset="fake",
        provenance={
            "Dataset": "fake: made-up figures for tests",
            "Reader": "extractive (no language model)",
            "Reward": "token_f1",
            "Embedder": "all-MiniLM-L6-v2",
            "Tokenizer": "qwen2.5-72b-instruct",
            "Package version": "0.1.0",
            "Settings fingerprint": "b2d3f6a9c81e4f7a0c55",
            "Data fingerprint": "41ce02d7aa93be06f1d8",
        },
        matrix=matrix,
        evaluation=load_settings(PARAMS, environment={}).evaluation.model_copy(update={"bootstrap_samples": 50}),
        tests=tuple(fake_test(matrix, split, bonus) for split in splits),
        splits=splits,
        build_seconds={
            code: tuple(float(value) for value in scale * generator.lognormal(0, 0.7, episodes))
            for code, scale in {"S": 0.08, "T": 0.002, "G": 0.4, "V": 3.0, "R": 0.01}.items()
        },
        failures=tuple(failures),
    )


@pytest.fixture(scope="session")
def matrix() -> OutcomeMatrix:
    return fake_matrix()


@pytest.fixture(scope="session")
def inputs(matrix: OutcomeMatrix) -> ReportInputs:
    return fake_inputs(matrix)


@pytest.fixture(scope="session")
def make_matrix() -> Callable[..., OutcomeMatrix]:
    return fake_matrix


@pytest.fixture(scope="session")
def make_inputs() -> Callable[..., ReportInputs]:
    return fake_inputs
