import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.policies import BestFixedPolicy, FitContext, LookupPolicy, PolicyInput
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.subsets import ALL_SUBSETS, SINGLE_SUBSETS

S, T = 0b00001, 0b00010
LAMBDA = 1e-4


def ask(**meta: str) -> PolicyInput:
    return PolicyInput("why?", meta, 10)


def context(shrinkage: float = 0.0) -> FitContext:
    return FitContext(LAMBDA, shrinkage, 0)


def test_a_domain_lookup_by_hand(six_questions):
    """Game: S 2/3 against T 1/6. WEB: T 5/6 against S 0. All questions: T 1/2 against S 1/3; all price 0.1."""
    fitted = LookupPolicy(("domain",), shrunk=False).fitted(six_questions, context())
    assert fitted.select(ask(domain="Game")) == S
    assert fitted.select(ask(domain="WEB")) == T
    assert fitted.state["cells"]['["Game"]'] == {"subset": S, "questions": 3}


@pytest.mark.parametrize("meta", [{}, {"domain": "SOFTWARE"}, {"domain": ""}, {"qa_type": "A"}, {"Domain": "Game"}])
def test_a_missing_or_unknown_label_falls_back_to_all_questions(meta, six_questions):
    fitted = LookupPolicy(("domain",), shrunk=False).fitted(six_questions, context())
    assert fitted.select(ask(**meta)) == T


def test_the_shrinkage_that_tips_a_cell_by_hand(six_questions):
    """Game against all: S leads by 1/2 in the cell and trails by 1/6 outside, so S wins iff 3/(3+k) > 1/4, that is k < 9."""
    policy = LookupPolicy(("domain",), shrunk=True)
    assert policy.fitted(six_questions, context(8.9)).select(ask(domain="Game")) == S
    assert policy.fitted(six_questions, context(9.1)).select(ask(domain="Game")) == T


def test_a_raw_lookup_ignores_the_shrinkage(six_questions):
    policy = LookupPolicy(("domain",), shrunk=False)
    assert policy.fit(six_questions, context(1e9)) == policy.fit(six_questions, context(0.0))


def test_two_keys_fall_back_to_the_one_that_is_known(six_questions):
    fitted = LookupPolicy(("domain", "qa_type"), shrunk=False).fitted(six_questions, context())
    assert fitted.select(ask(domain="Game", qa_type="A")) == S  # S 3/4 against T 1/4
    assert fitted.select(ask(domain="Game", qa_type="?")) == S
    assert fitted.select(ask(domain="?", qa_type="B")) == T  # S 1/4 against T 1/2
    assert fitted.select(ask()) == T


def test_a_cell_without_questions_leans_on_the_mean_of_its_parents(make_matrix):
    scores = np.zeros((3, 31))
    scores[0, 0], scores[1, 1], scores[2, 2] = 0.6, 1.0, 0.1  # Game: S 0.6, B: T 1.0, neither: G
    tokens = np.full((3, 31), 5.0)
    labels = [("a", "Game", "A"), ("b", "WEB", "B"), ("c", "WEB", "A")]
    fitted = LookupPolicy(("domain", "qa_type"), shrunk=False).fitted(make_matrix(labels, scores, tokens), context())
    assert fitted.state["cells"]['["Game","B"]']["questions"] == 0
    assert fitted.select(ask(domain="Game", qa_type="B")) == T  # half of 1.0 against half of 0.6


def test_route_to_one_reads_one_structure(six_questions):
    six_questions.scores[:, 2] = 1.0  # S+T is best everywhere, but is no single structure
    fitted = LookupPolicy(("domain", "qa_type"), shrunk=True, single=True).fitted(six_questions, context(1.0))
    assert {int(mask) for mask in fitted.choices(policy_inputs(six_questions, labels=True))} == {S, T}


def test_explain_names_labels_and_structures(six_questions):
    fitted = LookupPolicy(("domain",), shrunk=False).fitted(six_questions, context())
    assert fitted.explain(ask(domain="Game")) == "lookup by domain: Game -> S"
    assert fitted.explain(ask()) == "lookup by domain: any domain -> T"
    both = LookupPolicy(("domain", "qa_type"), shrunk=True, single=True).fitted(six_questions, context())
    assert both.explain(ask(qa_type="B")) == "route-to-one by domain x capability: any domain, B -> T"


LABELS = st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", ""]), st.sampled_from(["A", "B", None]))
KEYS = st.sampled_from([("domain",), ("qa_type",), ("domain", "qa_type"), ("qa_type", "task_type")])


@st.composite
def tables(draw):
    """Labels, scores with some unscored, tokens: arguments of ``make_matrix``."""
    labels = draw(st.lists(LABELS, min_size=1, max_size=12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.choice([0.0, 0.25, 0.5, 1.0], (len(labels), 31))
    scores[rng.random(scores.shape) < draw(st.sampled_from([0.0, 0.1]))] = np.nan
    return labels, scores, rng.integers(0, 5, scores.shape) * 100


@settings(max_examples=40, deadline=None)
@given(tables(), KEYS, st.booleans())
def test_no_shrinkage_equals_raw(make_matrix, table, keys, single):
    train = make_matrix(*table)
    shrunk = LookupPolicy(keys, shrunk=True, single=single).fit(train, context(0.0))
    assert shrunk == LookupPolicy(keys, shrunk=False, single=single).fit(train, context(0.0))


@settings(max_examples=40, deadline=None)
@given(tables(), KEYS)
def test_infinite_shrinkage_equals_the_best_fixed_subset(make_matrix, table, keys):
    train = make_matrix(*table)
    cells = LookupPolicy(keys, shrunk=True).fit(train, context(float("inf")))["cells"]
    best = BestFixedPolicy().fit(train, context())["subset"]
    assert {cell["subset"] for cell in cells.values()} == {best}


@settings(max_examples=40, deadline=None)
@given(tables(), KEYS)
def test_a_raw_lookup_equals_a_naive_search_of_each_cell(make_matrix, table, keys):
    """Complete tables only: there, the best subset of a cell is plainly the one with the highest mean objective."""
    labels, scores, tokens = table
    train = make_matrix(labels, np.nan_to_num(scores), tokens)
    fitted = LookupPolicy(keys, shrunk=False).fitted(train, context())
    inputs = policy_inputs(train, labels=True)
    for question in inputs:
        cell = [k for k, other in enumerate(inputs) if all(
            question.meta.get(key) in (None, other.meta.get(key)) for key in keys
        )]  # fmt: skip

        def objective(mask, cell=cell):
            return sum(train.scores[k, mask - 1] - LAMBDA * train.tokens[k, mask - 1] for k in cell) / len(cell)

        chosen = fitted.select(question)
        assert objective(chosen) == pytest.approx(max(map(objective, ALL_SUBSETS)))


def test_single_masks_are_single(six_questions):
    state = LookupPolicy(("domain", "qa_type"), shrunk=True, single=True).fit(six_questions, context(3.0))
    assert {cell["subset"] for cell in state["cells"].values()} <= set(SINGLE_SUBSETS)
