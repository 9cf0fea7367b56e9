"""From an archive to the policy that is frozen."""

import numpy as np
import pytest

from mesa_pipeline.errors import PolicyError
from mesa_pipeline.evaluation.evaluate import evaluate_policy
from mesa_pipeline.outcomes import joined
from mesa_pipeline.policies import FittedPolicy
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.policies.executable import ExecutablePolicy
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.result import choose, title
from mesa_pipeline.search.store import EVALUATED
from tests.search.searches import (
    META,
    SETTINGS,
    Scripted,
    entry,
    in_turn,
    learning,
    reading,
    ready,
    search_data,
    search_settings,
    table,
)

SANDBOX = open_sandbox(SETTINGS.policies.sandbox)
SPLIT_BOUND = (
    META + "def fit(rows, ctx):\n    return [len(rows), sum('lamp' in row['question'] for row in rows)]\n"
    "def select(state, q):\n    return ['S'] if state == [20, 20] else ['S', 'T', 'G', 'V', 'R', 'Q']\n"
)
"""Valid only when fitted to the training table alone."""


def finished(folder, *sources, iterations=1, data=None):
    search = ready(
        folder,
        Scripted(in_turn(*sources)),
        data=data or search_data(),
        settings=search_settings(iterations=iterations),
        sandbox=SANDBOX,
    )
    return search, search.run()


def chosen(search, archive, **settings):
    return choose(archive, search.store, search.data, SANDBOX, search_settings(**settings))


@pytest.fixture
def search(tmp_path):
    return finished(tmp_path, learning("domain", 1), learning("qa_type", 1), reading("S", "V"))


def test_the_best_on_validation_is_chosen_with_the_state_it_was_scored_with(search):
    found = chosen(*search)
    assert found.entry == search[1].frontier
    event = search[0].store.find(EVALUATED, found.entry.id)
    assert found.state == search[0].store.state(event["state"])


@pytest.mark.parametrize("rule", ["argmax", "lcb", "one-se-cheapest", "crossfit"])
def test_what_is_frozen_chooses_and_is_worth_what_was_scored(rule, search):
    found = chosen(*search, select=rule)
    fitted = FittedPolicy(found.policy, found.state)
    scored = search[0].store.choices(found.entry.behaviour)
    data = search[0].data
    assert fitted.choices(policy_inputs(data.train, True)).tolist() == scored.train.tolist()
    assert fitted.choices(policy_inputs(data.validation, True)).tolist() == scored.validation.tolist()
    again = evaluate_policy(fitted, data.validation, data.context.lambda_)
    assert again.objective == found.entry.validation.objective


def test_the_title_names_arm_and_candidate():
    assert title(entry("07-explore", direction="analogy")) == "analogy 07-explore"
    assert title(entry("all")) == "all"


def test_cross_fitting_scores_each_question_by_the_other_fit(search, tmp_path):
    """Worked out with the policies themselves, fitted on one split and evaluated on the other."""
    data = search[0].data
    means = {}
    for candidate in search[1].entries:
        policy = ExecutablePolicy(candidate.id, candidate.source, SANDBOX)
        there = evaluate_policy(policy.fitted(data.train, data.context), data.validation, data.context.lambda_)
        back = evaluate_policy(policy.fitted(data.validation, data.context), data.train, data.context.lambda_)
        means[candidate.id] = (there.objective * there.n + back.objective * back.n) / (there.n + back.n)
    assert chosen(*search, select="crossfit").entry.id == max(means, key=means.__getitem__)


def test_what_cannot_be_fitted_on_the_other_split_is_not_chosen_by_cross_fitting(tmp_path):
    data = search_data()
    data.validation.scores[:, 0] = 1.0
    search, archive = finished(tmp_path, SPLIT_BOUND, data=data)
    assert archive.frontier.source == SPLIT_BOUND
    assert chosen(search, archive).entry.source == SPLIT_BOUND
    assert chosen(search, archive, select="crossfit").entry.id == "all"


def test_a_refit_learns_from_both_splits(search):
    found = chosen(*search, refit=True, select="argmax")
    data = search[0].data
    both = joined(data.train, data.validation)
    assert found.state == ExecutablePolicy("p", found.entry.source, SANDBOX).fit(both, data.context)
    assert found.entry == search[1].frontier


def test_a_refit_that_is_not_valid_is_refused(tmp_path):
    data = search_data()
    data.validation.scores[:, 0] = 1.0
    search, archive = finished(tmp_path, SPLIT_BOUND, data=data)
    with pytest.raises(PolicyError, match=r"01-exploit cannot be fitted to train and validation together: .*failed on"):
        chosen(search, archive, refit=True)


def test_choosing_writes_nothing(search, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    chosen(*search, refit=True, select="crossfit")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_table_with_unscored_training_questions_can_be_cross_fitted(tmp_path):
    train = table("lamp")
    train.scores[0, 3] = np.nan
    search, archive = finished(tmp_path, learning("task_type", 0).replace("y - ", "(y or 0) - "), data=search_data(train=train))
    assert len(archive.entries) == 2
    assert chosen(search, archive, select="crossfit").entry.id in {"all", "01-exploit"}
