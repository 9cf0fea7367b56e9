from dataclasses import dataclass, fields

import numpy as np
import pytest

from mesa_pipeline.errors import PolicyError
from mesa_pipeline.outcomes import QuestionInfo
from mesa_pipeline.policies import FitContext, FittedPolicy, FixedPolicy, PolicyInput
from mesa_pipeline.policies.base import policy_input

QUESTION = QuestionInfo("../../x#0", "../../x", "why?", "Game", "crafter", "A", 40)


@dataclass(frozen=True)
class Broken(FixedPolicy):
    """Chooses whatever it is told, right or wrong."""

    def select(self, state, question):
        return state


def test_a_policy_is_shown_the_labels_when_there_are_labels():
    assert policy_input(QUESTION, labels=True) == PolicyInput(
        "why?", {"domain": "Game", "task_type": "crafter", "qa_type": "A"}, 40
    )


def test_without_labels_a_policy_is_shown_question_and_length_alone():
    assert policy_input(QUESTION, labels=False) == PolicyInput("why?", {}, 40)


def test_unknown_labels_are_absent():
    bare = QuestionInfo("e#0", "e", "why?", "", "", None, 3)
    assert policy_input(bare, labels=True).meta == {}


def test_a_policy_never_sees_an_id():
    seen = policy_input(QUESTION, labels=True)
    assert {field.name for field in fields(seen)} == {"question", "meta", "steps", "previews"}
    assert "../../x" not in repr(seen)


@pytest.mark.parametrize("wrong", [0, 32, -1, None, "S", 1.5, [1]])
def test_a_choice_outside_the_31_subsets_breaks_the_contract(wrong):
    with pytest.raises(PolicyError, match=r"1\.\.31"):
        FittedPolicy(Broken(1), wrong).select(PolicyInput("why?", {}, 1))


def test_a_batch_of_the_wrong_length_breaks_the_contract():
    class Short(FixedPolicy):
        def select_many(self, state, questions):
            return [1]

    with pytest.raises(PolicyError, match="1 of 2 questions"):
        FittedPolicy(Short(1), {}).choices([PolicyInput("a", {}, 1), PolicyInput("b", {}, 1)])


def test_choices_are_one_mask_a_question():
    assert np.array_equal(FittedPolicy(FixedPolicy(3), {}).choices([PolicyInput("a", {}, 1)] * 2), [3, 3])
    assert FittedPolicy(FixedPolicy(3), {}).choices([]).shape == (0,)


def test_fit_context_takes_price_and_shrinkage_from_the_settings(settings):
    assert FitContext.of(settings, 7) == FitContext(settings.search.lambda_, settings.policies.shrinkage, 7)
