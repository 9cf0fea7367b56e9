"""Policies that are code: what they are shown, and that the code alone decides."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError, GateError, PolicyError, SandboxFailure
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies import ExecutablePolicy, FitContext, PolicyInput, open_policy
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.policies.executable import context_json, encode_questions, encode_rows
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.types import Preview

META = 'META = {"direction": "free", "hypothesis": "A test.", "parents": []}\n'
BY_DOMAIN = (
    META
    + """
def fit(rows, ctx):
    cells = {}
    for row in rows:
        worth = [y - ctx["lambda"] * t for y, t in zip(row["y"], row["tok"])]
        cells.setdefault(row["meta"].get("domain", ""), []).append(worth)
    means = {cell: [sum(column) / len(column) for column in zip(*cells[cell])] for cell in sorted(cells)}
    return {cell: ctx["subsets"][means[cell].index(max(means[cell]))] for cell in means}


def select(state, q):
    return state.get(q["meta"].get("domain", ""), ["V", "R"])
"""
)
BY_PREVIEW = META + 'def select(state, q):\n    return ["S"] if q["previews"].get("S", {}).get("n_items") else ["T"]\n'
CONTEXT = FitContext(1e-4, 20.0, seed=5)


@pytest.fixture(scope="module")
def sandbox(settings):
    return open_sandbox(settings.policies.sandbox)


@pytest.fixture
def policy(sandbox):
    return ExecutablePolicy("by domain", BY_DOMAIN, sandbox)


def previewed(matrix: OutcomeMatrix) -> OutcomeMatrix:
    glimpse = Preview("saw a door", 2, 50, 0.5, (0.5,), (1, 2))
    return replace(matrix, questions=tuple(replace(question, previews={"S": glimpse}) for question in matrix.questions))


def test_it_learns_and_chooses_as_worked_by_hand(policy, six_questions):
    """S is worth 2/3 - 0.1 on Game and T 5/6 - 0.1 on WEB; a domain never seen gets V+R."""
    fitted = policy.fitted(six_questions, CONTEXT)
    assert fitted.state == {"Game": ["S"], "WEB": ["T"]}
    assert fitted.choices(policy_inputs(six_questions, True)).tolist() == [1, 1, 1, 2, 2, 2]
    assert fitted.select(PolicyInput("why?", {}, 1)) == 0b11000


def test_the_order_of_training_questions_does_not_matter(six_questions):
    order = list(range(6))
    random.Random(1).shuffle(order)
    questions = tuple(six_questions.questions[k] for k in order)
    turned = OutcomeMatrix(questions, six_questions.scores[order], six_questions.tokens[order])
    assert encode_rows(turned, CONTEXT) == encode_rows(six_questions, CONTEXT)


def test_a_row_holds_what_was_learnt_and_no_id(six_questions):
    six_questions.scores[0, 4] = np.nan
    row = json.loads(encode_rows(previewed(six_questions), CONTEXT).whole)[0]
    assert set(row) == {"question", "meta", "steps", "previews", "y", "tok", "group"}
    assert (row["y"][:5], row["tok"][:3], row["group"]) == ([1.0, 0.0, 0.2, 0.2, None], [1000, 1000, 2000], 0)
    assert (len(row["y"]), len(row["tok"])) == (31, 31)
    assert row["meta"] == {"domain": "Game", "qa_type": "A"}


def test_groups_are_episodes_by_number(six_questions):
    groups = [row["group"] for row in json.loads(encode_rows(six_questions, CONTEXT).whole)]
    assert groups == [0, 0, 1, 2, 2, 3]


def test_without_labels_no_row_has_any(six_questions):
    unlabelled = json.loads(encode_rows(six_questions, replace(CONTEXT, labels=False)).whole)
    assert all(row["meta"] == {} for row in unlabelled)


def test_the_context_lists_subsets_by_mask():
    context = context_json(replace(CONTEXT, max_structures=2))
    assert context["structures"] == ["S", "T", "G", "V", "R"]
    assert context["subsets"][0b10001 - 1] == ["S", "R"]
    assert len(context["subsets"]) == 31
    assert {name: context[name] for name in ("lambda", "shrinkage", "seed", "max_structures")} == {
        "lambda": 1e-4,
        "shrinkage": 20.0,
        "seed": 5,
        "max_structures": 2,
    }


def test_previews_are_shown_to_a_source_that_names_them(sandbox, six_questions):
    reads = ExecutablePolicy("reads", BY_PREVIEW, sandbox)
    assert reads.reads_previews
    shown = policy_inputs(previewed(six_questions), True)
    assert reads.select_many({}, shown) == [1] * 6
    assert reads.select_many({}, policy_inputs(six_questions, True)) == [2] * 6


def test_a_source_that_does_not_name_them_is_shown_none_in_training_nor_in_asking(sandbox, six_questions):
    """It asks by another name for what it may not see; what it sees must be what it will see when it is served."""
    sly = ExecutablePolicy("sly", BY_PREVIEW.replace('"previews"', '"pre" + "views"'), sandbox)
    assert not sly.reads_previews
    assert sly.select_many({}, policy_inputs(previewed(six_questions), True)) == [2] * 6


def test_one_at_a_time_is_as_all_at_once(policy, six_questions):
    state = policy.fit(six_questions, CONTEXT)
    inputs = policy_inputs(six_questions, True)
    assert [policy.select(state, question) for question in inputs] == policy.select_many(state, inputs)
    assert policy.select_encoded(state, encode_questions(inputs), hash_seed=1) == policy.select_many(state, inputs)


def test_opening_its_description_gives_the_same_policy(policy, sandbox):
    spec = json.loads(json.dumps(policy.spec()))
    again = open_policy(spec, sandbox)
    assert again == policy
    assert (again.name, again.kind) == ("by domain", "executable")


def test_code_is_opened_with_a_sandbox_only(policy):
    with pytest.raises(PolicyError, match="sandbox"):
        open_policy(policy.spec())


@pytest.mark.parametrize("change", [{"source": "import os"}, {"source": ""}, {"source": None}, {"source": 3}, {"title": None}])
def test_a_description_that_is_no_policy_is_refused(change, policy, sandbox):
    with pytest.raises(PolicyError):
        open_policy({**policy.spec(), **change}, sandbox)


def test_a_source_is_gated_before_it_runs(sandbox, six_questions):
    with pytest.raises(GateError):
        ExecutablePolicy("bad", META + "import os\ndef select(state, q):\n    return ['S']\n", sandbox).fit(
            six_questions, CONTEXT
        )


def test_without_a_fit_nothing_is_learnt(sandbox, six_questions):
    assert ExecutablePolicy("p", BY_PREVIEW, sandbox).fit(six_questions, CONTEXT) == {}


def test_failures_are_counted_and_the_first_is_named(sandbox, six_questions):
    source = META + "def select(state, q):\n    return ['S'] if q['meta']['domain'] == 'Game' else []\n"
    with pytest.raises(PolicyError, match=r"picky failed on 3 of 6 questions; first: "):
        ExecutablePolicy("picky", source, sandbox).select_many({}, policy_inputs(six_questions, True))


def test_a_fit_that_fails_says_so(sandbox, six_questions):
    source = META + "def fit(rows, ctx):\n    return rows[999]\ndef select(state, q):\n    return ['S']\n"
    with pytest.raises(SandboxFailure, match="IndexError"):
        ExecutablePolicy("p", source, sandbox).fit(six_questions, CONTEXT)


@pytest.mark.parametrize(("missing", "message"), [("tokens", "mesa sweep"), ("scores", "no training outcome has a score")])
def test_training_without_outcomes_is_refused(missing, message, six_questions):
    getattr(six_questions, missing)[:] = np.nan
    with pytest.raises(ArtifactError, match=message):
        encode_rows(six_questions, CONTEXT)


@pytest.mark.parametrize("text", ["", "\x00", "\ud800", "\u202e{0.__class__}", "a" * 100_000])
def test_any_text_is_answered(text, policy, six_questions):
    state = policy.fit(six_questions, CONTEXT)
    assert policy.select(state, PolicyInput(text, {"domain": text}, 0)) == 0b11000


def test_it_explains_itself_by_its_hypothesis(policy, six_questions):
    fitted = policy.fitted(six_questions, CONTEXT)
    assert fitted.explain(PolicyInput("why?", {"domain": "Game"}, 1)) == "by domain: A test. -> S"
