"""Held-out estimates: they see no answer of the question they choose for, and find what can be foreseen."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from mesa_pipeline.evaluation.predictability import (
    choose_by_cells,
    choose_by_features,
    choose_by_siblings,
    episode_folds,
)
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.subsets import encode

TEMPORAL, RAW = encode("T"), encode("R")
Choose = Callable[[OutcomeMatrix], np.ndarray]


def questions(episodes: int = 15, per_episode: int = 8) -> tuple[QuestionInfo, ...]:
    return tuple(
        QuestionInfo(
            f"e{e}#{q}", f"e{e}", ("Why so?", "What is it?")[q % 2], ("Game", "WEB")[e % 2], "", ("a", "b")[q // 4], 9 + q
        )
        for e in range(episodes)
        for q in range(per_episode)
    )


def table(infos: Sequence[QuestionInfo], likes_temporal: np.ndarray, noise: float = 0.05) -> OutcomeMatrix:
    """Questions that like T score 0.3 more for reading T alone, the others for reading R alone."""
    scores = 0.4 + noise * np.random.default_rng(1).standard_normal((len(infos), 31))
    scores[np.arange(len(infos)), np.where(likes_temporal, TEMPORAL, RAW) - 1] += 0.3
    return OutcomeMatrix(tuple(infos), scores, np.ones_like(scores))


def by_cells(matrix: OutcomeMatrix) -> np.ndarray:
    cells = np.array([question.domain for question in matrix.questions], dtype=object)
    return choose_by_cells(matrix, matrix.scores, cells, 5.0)


def by_features(matrix: OutcomeMatrix) -> np.ndarray:
    return choose_by_features(matrix, matrix.scores, labels=False)


def by_siblings(matrix: OutcomeMatrix) -> np.ndarray:
    return choose_by_siblings(matrix, matrix.scores, 1.0)


def test_folds_keep_episodes_whole_and_ignore_order() -> None:
    ids = np.array([question.episode_id for question in questions()], dtype=object)
    folds = episode_folds(ids)
    assert set(folds) == set(range(5))
    for episode in set(ids):
        assert len(set(folds[ids == episode])) == 1
    order = np.random.default_rng(0).permutation(len(ids))
    np.testing.assert_array_equal(episode_folds(ids[order]), folds[order])
    assert len(set(episode_folds(np.array(["a", "b"], dtype=object)))) == 2


@pytest.mark.parametrize(
    ("choose", "tells"),
    [
        (by_cells, lambda question: question.domain == "Game"),
        (by_features, lambda question: question.text == "Why so?"),
        (by_siblings, lambda question: question.episode_id in {"e0", "e3", "e7", "e8"}),
    ],
)
def test_finds_what_can_be_foreseen(choose: Choose, tells: Callable[[QuestionInfo], bool]) -> None:
    infos = questions()
    likes = np.array([tells(question) for question in infos])
    np.testing.assert_array_equal(choose(table(infos, likes)), np.where(likes, TEMPORAL, RAW))


@pytest.mark.parametrize("choose", [by_cells, by_features, by_siblings])
def test_never_sees_the_question_it_chooses_for(choose: Choose) -> None:
    infos = questions()
    matrix = table(infos, np.zeros(len(infos), dtype=bool), noise=0.3)
    for row in (0, 50, 119):
        changed = matrix.scores.copy()
        changed[row] = changed[row, ::-1]
        other = OutcomeMatrix(matrix.questions, changed, matrix.tokens)
        assert choose(other)[row] == choose(matrix)[row]


def test_labels_are_seen_only_where_asked_for() -> None:
    infos = questions()
    likes = np.array([question.qa_type == "a" for question in infos])
    matrix = table(tuple(QuestionInfo(q.id, q.episode_id, "What?", q.domain, "", q.qa_type, 9) for q in infos), likes)
    np.testing.assert_array_equal(choose_by_features(matrix, matrix.scores, labels=True), np.where(likes, TEMPORAL, RAW))
    assert len(set(choose_by_features(matrix, matrix.scores, labels=False)[:8])) == 1
