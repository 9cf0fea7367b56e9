"""Expected values of subsets: by hand, without labels, whatever the order of the questions."""

import json

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies import FitContext, PolicyInput
from mesa_pipeline.policies.values import ValueModel, fit_values
from mesa_pipeline.subsets import FULL_SUBSET

S, T = 0b00001, 0b00010
KEYS = ("domain", "qa_type")
FREE = np.zeros(31)


def context(shrinkage: float = 0.0, lambda_: float = 1e-4) -> FitContext:
    return FitContext(lambda_, shrinkage, 0)


def asked(**meta: str) -> PolicyInput:
    return PolicyInput("why?", meta, 10)


def difference(model: ValueModel, question: PolicyInput, one: int, other: int) -> float:
    worth = model.worth(question, FREE)
    return float(worth[one - 1] - worth[other - 1])


def test_a_cell_by_hand(six_questions):
    """Game: S 2/3 against T 1/6. WEB: S 0 against T 5/6. All: S 1/3 against T 1/2. Tokens do not come in."""
    model = fit_values(six_questions, ("domain",), context())
    assert difference(model, asked(domain="Game"), S, T) == pytest.approx(1 / 2)
    assert difference(model, asked(domain="WEB"), S, T) == pytest.approx(-5 / 6)
    assert difference(model, asked(), S, T) == pytest.approx(-1 / 6)


def test_a_cell_leans_on_all_questions_by_hand(six_questions):
    """Three questions of Game lead by 1/2, six pseudo-questions of all trail by 1/6: (3/2 - 6/6) / 9."""
    model = fit_values(six_questions, ("domain",), context(shrinkage=6.0))
    assert difference(model, asked(domain="Game"), S, T) == pytest.approx((3 * 1 / 2 - 6 * 1 / 6) / 9)


@pytest.mark.parametrize("meta", [{}, {"domain": "SOFTWARE"}, {"domain": ""}, {"qa_type": "\ud800"}, {"Domain": "Game"}])
def test_without_a_known_label_it_is_the_mean_of_all(meta, six_questions):
    model = fit_values(six_questions, KEYS, context(5.0))
    assert difference(model, asked(**meta), S, T) == pytest.approx(-1 / 6)


def test_tokens_have_the_price_they_had_in_the_search(six_questions):
    model = fit_values(six_questions, KEYS, context(lambda_=1e-3))
    tokens = FREE.copy()
    tokens[S - 1] = 200
    assert model.worth(asked(), tokens)[S - 1] == pytest.approx(model.worth(asked(), FREE)[S - 1] - 0.2)


def test_the_order_of_questions_does_not_show(make_matrix):
    rng = np.random.default_rng(0)
    labels = [(f"e{k}", "AB"[k % 2], "xyz"[k % 3]) for k in range(60)]
    matrix = make_matrix(labels, rng.random((60, 31)), rng.integers(1, 9999, (60, 31)))
    order = rng.permutation(60)
    shuffled = OutcomeMatrix(tuple(matrix.questions[k] for k in order), matrix.scores[order], matrix.tokens[order])
    models = [json.dumps(fit_values(m, KEYS, context(20.0)).to_json(), sort_keys=True) for m in (matrix, shuffled)]
    assert models[0] == models[1]


def test_a_subset_never_scored_is_worth_nothing_and_survives_json(six_questions):
    scores = six_questions.scores.copy()
    scores[:, FULL_SUBSET - 1] = np.nan
    model = fit_values(OutcomeMatrix(six_questions.questions, scores, six_questions.tokens), KEYS, context())
    again = ValueModel.from_json(json.loads(json.dumps(model.to_json(), allow_nan=False)))
    assert again == model
    assert again.worth(asked(domain="Game"), FREE)[FULL_SUBSET - 1] == -np.inf


@pytest.mark.parametrize("change", [{"scores": {}}, {"scores": {"[null,null]": [0.0]}}, {"keys": ["domain"]}, {"lambda": None}])
def test_what_is_no_model_is_refused(change, six_questions):
    stored = fit_values(six_questions, KEYS, context()).to_json() | change
    with pytest.raises(ArtifactError, match="mesa optimize"):
        ValueModel.from_json(stored)


def test_questions_never_swept_are_an_error(six_questions):
    tokens = six_questions.tokens.copy()
    tokens[0, 0] = np.nan
    with pytest.raises(ArtifactError, match="mesa sweep"):
        fit_values(OutcomeMatrix(six_questions.questions, six_questions.scores, tokens), KEYS, context())
