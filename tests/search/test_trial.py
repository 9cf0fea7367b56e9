"""Valid, Fit and Evaluate of one candidate."""

import re

import numpy as np
import pytest

from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.policies.executable import ExecutablePolicy
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.initial import initial_source
from mesa_pipeline.search.trial import Invalid, Trial, gated, tried
from tests.search.searches import INVALID, META, SETTINGS, learning, reading, search_data, search_settings, table

SANDBOX = open_sandbox(SETTINGS.policies.sandbox)


def trial_of(source: str, data=None) -> Trial | Invalid:
    data = data or search_data()
    code = gated(source, data)
    return code if isinstance(code, Invalid) else tried(code, "01-explore", data, SANDBOX)


@pytest.mark.parametrize("kind", INVALID)
def test_an_invalid_candidate_is_named_with_its_reason(kind):
    source, reason = INVALID[kind]
    found = trial_of(source)
    assert isinstance(found, Invalid), kind
    assert re.search(reason, found.reason, re.DOTALL)


def test_a_valid_one_comes_with_state_choices_and_worth():
    data = search_data()
    found = trial_of(reading("S", "G"), data)
    assert isinstance(found, Trial)
    assert found.state == {}
    assert set(found.choices.train) == set(found.choices.validation) == {0b00101}
    assert found.worth == data.worth("01-explore", found.choices)


def test_what_is_chosen_is_what_the_policy_chooses_when_asked():
    data = search_data()
    source = learning("domain", 1)
    found = trial_of(source, data)
    assert isinstance(found, Trial)
    policy = ExecutablePolicy("p", source, SANDBOX)
    assert policy.fit(data.train, data.context) == found.state
    fitted = policy.fitted(data.train, data.context)
    assert fitted.choices(policy_inputs(data.validation, True)).tolist() == found.choices.validation.tolist()
    assert len(set(found.choices.train)) > 1


def test_previews_are_shown():
    found = trial_of(META + "def select(state, q):\n    return ['S'] if q['previews'].get('V', {}).get('n_items') else ['T']\n")
    assert isinstance(found, Trial)
    assert set(found.choices.validation) == {1, 2}


def test_at_most_so_many_structures_may_be_read():
    data = search_data(settings=search_settings(max_structures=2))
    assert isinstance(trial_of(reading("S", "T"), data), Trial)
    found = trial_of(reading("S", "T", "G"), data)
    assert isinstance(found, Invalid)
    assert "reads 3 structures" in found.reason
    assert "allows 2" in found.reason


def test_choices_without_a_single_score_are_not_worth_anything():
    """Reading V alone failed for every training question; that is no reason to stop the search."""
    train = table("lamp")
    train.scores[:, 8 - 1] = np.nan
    found = trial_of(reading("V"), search_data(train=train))
    assert isinstance(found, Invalid)
    assert "has a score" in found.reason


def test_training_questions_without_a_score_are_left_to_fit():
    train = table("lamp")
    train.scores[0, :] = np.nan
    source = META + "def fit(rows, ctx):\n    return sum(y is None for row in rows for y in row['y'])\n"
    found = trial_of(source + "def select(state, q):\n    return ['S']\n", search_data(train=train))
    assert isinstance(found, Trial)
    assert found.state == 31
    assert found.worth.train.unscored == 1


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5])
def test_the_policy_that_archives_start_with_is_valid(most):
    data = search_data(settings=search_settings(max_structures=most))
    found = trial_of(initial_source(most), data)
    assert isinstance(found, Trial)
    sizes = {int(mask).bit_count() for mask in found.choices.validation}
    assert sizes <= set(range(1, most + 1))


def test_with_all_structures_allowed_it_reads_everything():
    found = trial_of(initial_source(5))
    assert isinstance(found, Trial)
    assert set(found.choices.validation) == {31}


def test_where_fewer_are_allowed_it_reads_the_best_of_those_by_hand():
    train = table("lamp")
    train.scores[:] = 0.25
    train.scores[:, [4 - 1, 31 - 1]] = [0.75, 1.0]
    found = trial_of(initial_source(1), search_data(train=train, settings=search_settings(max_structures=1)))
    assert isinstance(found, Trial)
    assert found.state == ["G"]
