"""What candidates are fitted to and asked: prepared once, and the same for all."""

import json

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.evaluate import evaluate_choices
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.search.data import ODD_TEXTS, odd_questions
from mesa_pipeline.search.store import Choices
from tests.search.searches import search_data, search_settings, table


@pytest.fixture
def data():
    return search_data()


def test_questions_are_those_of_both_splits_and_odd_ones(data):
    texts = [question["question"] for question in json.loads(data.questions.whole)]
    known = [question.text for matrix in (data.train, data.validation) for question in matrix.questions]
    assert texts[: len(known)] == known
    assert set(texts[len(known) :]) >= set(ODD_TEXTS)


def test_the_other_order_holds_the_same_questions(data):
    questions, shuffled = json.loads(data.questions.whole), json.loads(data.shuffled.whole)
    assert [questions[k] for k in data.order] == shuffled
    assert sorted(data.order) == list(range(len(questions)))
    assert questions != shuffled


def test_equal_tables_are_prepared_to_equal_bytes(data):
    again = search_data()
    assert (again.rows, again.questions, again.shuffled) == (data.rows, data.questions, data.shuffled)


def test_no_id_and_no_outcome_is_in_a_question(data):
    for question in json.loads(data.questions.whole):
        assert set(question) == {"question", "meta", "steps", "previews"}
    assert b"lamp0#" not in data.questions.whole
    assert b"lamp0#" not in data.rows.whole


def test_without_labels_questions_and_rows_have_none():
    unlabelled = search_data(settings=search_settings(labels=False))
    known = json.loads(unlabelled.questions.whole)[: len(unlabelled.train)]
    assert all(item["meta"] == {} for item in [*known, *json.loads(unlabelled.rows.whole)])


def test_odd_questions_vary_labels_steps_and_previews():
    odd = odd_questions(policy_inputs(table("lamp"), labels=True))
    assert {frozenset(question.meta) for question in odd} >= {frozenset(), frozenset({"domain", "task_type", "qa_type"})}
    assert {len(question.previews) for question in odd} == {0, 2, 5}
    assert {question.steps for question in odd} >= {0, 10**9}


def test_validation_questions_lacking_a_score_are_left_out_for_all():
    validation = table("door")
    validation.scores[[0, 3], [5, 30]] = np.nan
    data = search_data(validation=validation)
    assert len(data.validation) == len(validation) - 2
    assert not np.isnan(data.validation.scores).any()


def test_choices_are_cut_at_the_splits(data):
    masks = np.arange(len(data.order)) % 31 + 1
    choices = data.choices(masks)
    assert choices.train.tolist() == masks[: len(data.train)].tolist()
    assert choices.validation.tolist() == masks[len(data.train) : len(data.train) + len(data.validation)].tolist()


def test_worth_is_that_of_the_outcome_table(data):
    choices = Choices(np.full(len(data.train), 3), np.full(len(data.validation), 17))
    found = data.worth("p", choices)
    assert found.train == evaluate_choices("p", "executable", data.train, choices.train, data.context.lambda_)
    assert found.validation.score == pytest.approx(data.validation.scores[:, 16].mean())
    assert found.validation.tokens == pytest.approx(data.validation.tokens[:, 16].mean())


@pytest.mark.parametrize("empty", ["train", "validation"])
def test_a_split_without_scores_is_refused(empty):
    unscored = table("lamp")
    unscored.scores[:] = np.nan
    with pytest.raises(ArtifactError, match="mesa sweep"):
        search_data(**{empty: unscored})
