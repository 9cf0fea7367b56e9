import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.evaluate import evaluate_choices
from mesa_pipeline.outcomes import QuestionInfo, to_matrix
from mesa_pipeline.subsets import ALL_SUBSETS, FULL_SUBSET
from mesa_pipeline.types import Outcome

QUESTIONS = [QuestionInfo(f"e#{k}", "e", "?", "Game", "2048", "recall", 9) for k in range(12)]


def outcomes_of(question: str, score: float | None = 0.5) -> list[Outcome]:
    error = None if score is not None else "the reader failed"
    return [Outcome(question, mask, score, 100 * mask, "x", error) for mask in ALL_SUBSETS]


def test_cells_stand_at_their_question_and_mask():
    matrix = to_matrix(QUESTIONS, [Outcome("e#3", 5, 0.25, 70, "x"), Outcome("e#3", 31, None, 90, "", "failed")])
    assert (matrix.scores[3, 4], matrix.tokens[3, 4]) == (0.25, 70)
    assert np.isnan(matrix.scores[3, 30])
    assert matrix.tokens[3, 30] == 90
    assert np.isnan(matrix.tokens).sum() == 12 * 31 - 2
    assert matrix.unscored == 12 * 31 - 1


def test_the_order_of_outcomes_changes_nothing():
    outcomes = [outcome for question in QUESTIONS for outcome in outcomes_of(question.id, 0.5)]
    straight, reverse = to_matrix(QUESTIONS, outcomes), to_matrix(QUESTIONS, outcomes[::-1])
    assert np.array_equal(straight.scores, reverse.scores)
    assert np.array_equal(straight.tokens, reverse.tokens)


def test_outcomes_of_other_questions_are_left_aside():
    assert np.isnan(to_matrix(QUESTIONS, outcomes_of("other#0")).tokens).all()


def test_eleven_answers_to_twelve_questions_have_no_mean():
    matrix = to_matrix(
        QUESTIONS, [outcome for question in QUESTIONS if question.id != "e#7" for outcome in outcomes_of(question.id)]
    )
    with pytest.raises(ArtifactError, match=r"1 of 12 .* missing"):
        evaluate_choices("all", "all", matrix, np.full(12, FULL_SUBSET), 0.0)


def test_three_scored_and_one_failed_give_a_mean_over_three():
    scores = dict(zip([question.id for question in QUESTIONS[:4]], [1.0, None, 0.0, 1.0], strict=True))
    matrix = to_matrix(
        QUESTIONS[:4], [outcome for question, score in scores.items() for outcome in outcomes_of(question, score)]
    )
    found = evaluate_choices("all", "all", matrix, np.full(4, FULL_SUBSET), 0.0)
    assert (found.score, found.n, found.unscored) == (pytest.approx(2 / 3), 4, 1)


def test_selecting_keeps_rows_together():
    matrix = to_matrix(QUESTIONS, outcomes_of("e#2", 0.75)).select(np.arange(12) == 2)
    assert [question.id for question in matrix.questions] == ["e#2"]
    assert (matrix.scores == 0.75).all()
    assert matrix.episode_ids.tolist() == ["e"]
