"""The registry in ``mesa_pipeline/policies/__init__.py``, and what holds for every policy in it."""

import json

import numpy as np
import pytest

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import PolicyError
from mesa_pipeline.policies import POLICIES, FitContext, FittedPolicy, PolicyInput, baseline_policies, open_policy
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.subsets import ALL_SUBSETS, SINGLE_SUBSETS

CONTEXT = FitContext(1e-4, 3.0, 0)
BASELINES = baseline_policies(load_settings(environment={}).policies)
HOSTILE = ["", "\x00", "\ud800", "שלום", "{domain}", "a" * 1_100_000, '["Game",null]', "\u202e"]


def test_the_ladder_starts_with_all_and_holds_every_baseline():
    assert [policy.name for policy in BASELINES] == [
        "all", "S", "T", "G", "V", "R", "best fixed",
        "lookup by domain (raw)", "lookup by domain (shrunk)",
        "lookup by capability (raw)", "lookup by capability (shrunk)",
        "lookup by domain x capability (raw)", "lookup by domain x capability (shrunk)",
        "route-to-one",
    ]  # fmt: skip
    assert {policy.spec()["type"] for policy in BASELINES} == set(POLICIES) - {"executable"}  # those are searched for


@pytest.mark.parametrize("policy", BASELINES, ids=lambda policy: policy.name)
def test_a_policy_chooses_the_same_after_a_round_trip_through_json(policy, six_questions):
    state = policy.fit(six_questions, CONTEXT)
    opened = open_policy(json.loads(dump_json(policy.spec())))
    restored = json.loads(dump_json(state))
    assert opened.name == policy.name
    assert opened.kind == policy.kind
    for labels in (True, False):
        inputs = policy_inputs(six_questions, labels)
        assert opened.select_many(restored, inputs) == policy.select_many(state, inputs)


@pytest.mark.parametrize("policy", BASELINES, ids=lambda policy: policy.name)
def test_a_policy_answers_any_text_with_any_labels(policy, six_questions):
    fitted = policy.fitted(six_questions, CONTEXT)
    allowed = SINGLE_SUBSETS if policy.kind == "route" else ALL_SUBSETS
    for text in HOSTILE:
        for meta in ({}, {"domain": text}, {"qa_type": text, "domain": "Game"}, {"other": text}):
            question = PolicyInput(text, meta, 0)
            assert fitted.select(question) in allowed
            assert subsets.label(fitted.select(question)) in fitted.explain(question)


@pytest.mark.parametrize("policy", BASELINES, ids=lambda policy: policy.name)
def test_the_order_of_training_questions_changes_nothing(policy, six_questions, make_matrix):
    rng = np.random.default_rng(0)
    scores, tokens = rng.choice([0.0, 0.1, 0.3, 0.7], (6, 31)), rng.integers(0, 3, (6, 31)) * 100
    labels = [(question.episode_id, question.domain, question.qa_type) for question in six_questions.questions]
    state = policy.fit(make_matrix(labels, scores, tokens), CONTEXT)
    for _ in range(10):
        order = rng.permutation(6)
        permuted = make_matrix([labels[k] for k in order], scores[order], tokens[order])
        assert policy.fit(permuted, CONTEXT) == state


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"type": "genetic"},
        {"type": ["fixed"]},
        {"type": "fixed"},
        {"type": "fixed", "structures": []},
        {"type": "fixed", "structures": ["X"]},
        {"type": "lookup", "keys": ["id"], "shrunk": True, "single": False},
        {"type": "lookup", "keys": [], "shrunk": True, "single": False},
        {"type": "lookup", "keys": ["domain", "domain"], "shrunk": True, "single": False},
        {"type": "lookup", "keys": 3, "shrunk": True, "single": False},
    ],
)
def test_what_is_no_policy_is_refused(spec):
    with pytest.raises(PolicyError):
        open_policy(spec)


@pytest.mark.parametrize("spec", [None, [], "fixed"])
def test_a_specification_that_is_no_object_is_refused(spec):
    with pytest.raises(PolicyError):
        open_policy(spec)


def test_open_policy_restores_an_equal_policy():
    assert [open_policy(policy.spec()) for policy in BASELINES] == BASELINES
    assert FittedPolicy(BASELINES[0], {}).name == "all"
