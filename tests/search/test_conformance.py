import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.policies.sandbox.gate import check
from mesa_pipeline.search.conformance import unused_signals
from mesa_pipeline.search.directions import DIRECTIONS
from tests.policies.sandbox.accepted import ACCEPTED

HEAD = 'META = {"direction": "d", "hypothesis": "h"}\n'
SIGNALS = (
    *("question", "steps", "meta", "meta.domain", "meta.qa_type", "previews", "previews.text", "previews.tokens"),
    *("rows", "rows.y", "rows.tok"),
)


def read_by(source: str) -> set[str]:
    source = HEAD + textwrap.dedent(source)
    assert check(source) == ()
    return set(SIGNALS) - set(unused_signals(source, SIGNALS))


def select(statements: str) -> str:
    return "def select(state, q):\n" + textwrap.indent(textwrap.dedent(statements), "    ") + "\n    return ['S']\n"


@pytest.mark.parametrize(
    ("statements", "read"),
    [
        ("", set()),
        ("if q['question']: return ['V']", {"question"}),
        ("if q.get('question', ''): return ['V']", {"question"}),
        ("text = q['question']\nif 'x' in text: return ['V']", {"question"}),
        ("text = q['question']", set()),
        ("q['question']", {"question"}),
        ("text, n = q['question'], q['steps']\nif n > 1: return ['V']", {"steps"}),
        ("if q['meta'].get('domain') == 'Game': return ['V']", {"meta", "meta.domain"}),
        ("meta = q.get('meta', {})\nif meta.get('qa_type', '') == 'A': return ['V']", {"meta", "meta.qa_type"}),
        ("if 'domain' in q: return ['V']", set()),
        ("if q['previews']['S']['tokens'] > 9: return ['V']", {"previews", "previews.tokens"}),
        ("p = q['previews']\nfor code in p:\n    if p[code].get('text'): return ['V']", {"previews", "previews.text"}),
        (
            "for code, preview in q['previews'].items():\n    if preview['tokens']: return [code]",
            {"previews", "previews.tokens"},
        ),
        ("for preview in list(q['previews'].values()):\n    if preview['text']: return ['V']", {"previews", "previews.text"}),
        ("return sorted(q['previews'], key=lambda k: q['previews'][k]['tokens'])", {"previews", "previews.tokens"}),
        (
            "return [k for k, p in sorted(q['previews'].items(), key=lambda pair: pair[1]['tokens'])]",
            {"previews", "previews.tokens"},
        ),
        ("x = max(p['tokens'] for p in q['previews'].values())\nif x: return ['V']", {"previews", "previews.tokens"}),
        ("if (n := q['steps']) and n > 3: return ['V']", {"steps"}),
        ("copy = dict(q)\nif copy['steps']: return ['V']", {"steps"}),
        ("def inner(z):\n    return z['meta']['domain']\nif inner(q): return ['V']", {"meta", "meta.domain"}),
        ("f = lambda z: z['steps']\nif f(q): return ['V']", {"steps"}),
        ("if f'{q[\"steps\"]}': return ['V']", {"steps"}),
        ("for key, value in q.items():\n    if value: return ['V']", {signal for signal in SIGNALS if "rows" not in signal}),
        ("while q['steps'] > 3:\n    break", {"steps"}),
        ("try:\n    n = q['steps']\nexcept KeyError:\n    n = 0\nif n: return ['V']", {"steps"}),
    ],
)
def test_reads_of_a_question(statements, read):
    assert read_by(select(statements)) == read


def test_follows_calls_between_functions():
    source = """
    def tokens(previews, name):
        return previews[name]["tokens"]

    def previews_of(question):
        return question["previews"]

    def select(state, q):
        return [name for name in "STGVR" if tokens(previews_of(q), name) < 10] or ["S"]
    """
    assert read_by(source) == {"previews", "previews.tokens"}


def test_follows_functions_given_to_others_and_named_arguments():
    source = """
    def size(preview):
        return preview["tokens"]

    def domain(meta=None, other=None):
        return meta["domain"]

    def select(state, q):
        sizes = list(map(size, q["previews"].values()))
        return ["S"] if domain(meta=q["meta"]) and sizes else ["V"]
    """
    assert read_by(source) == {"previews", "previews.tokens", "meta", "meta.domain"}


def test_a_function_that_nothing_calls_reads_nothing():
    assert read_by("def other(q):\n    return q['steps']\n\n" + select("")) == set()


FIT = """
def fit(rows, ctx):
    total = 0.0
    for row in rows:
        total += row["y"][30]
    return {"total": total}
"""


def test_rows_count_where_the_state_is_looked_at():
    assert read_by(FIT + select("if state['total']: return ['V']")) == {"rows", "rows.y"}
    assert read_by(FIT + select("")) == set()
    assert read_by("def fit(rows, ctx):\n    return 3\n" + select("if state: return ['V']")) == set()


def test_what_fit_reads_of_a_row_is_not_what_select_reads_of_the_question():
    fit = "def fit(rows, ctx):\n    return [row['question'] for row in rows]\n"
    assert read_by(fit + select("if state: return ['V']")) == {"rows"}


@pytest.mark.parametrize(
    ("policy", "direction"),
    [
        ("lexical rules", "lexical-rules"),
        ("shrunk lookup", "task-metadata"),
        ("evidence quality", "evidence-quality"),
        ("nearest neighbours", "analogy"),
        ("nearest neighbours", "free"),
    ],
)
def test_policies_read_what_their_direction_is_about(policy, direction):
    assert unused_signals(ACCEPTED[policy], DIRECTIONS[direction].inputs) == ()


def test_names_what_is_not_read_in_the_order_asked():
    assert unused_signals(ACCEPTED["lexical rules"], ("steps", "question", "rows", "meta")) == ("steps", "rows", "meta")


def test_values_that_feed_on_themselves_come_to_an_end():
    source = select(
        "x = q\n" + "\n".join(f"x = x['k{k}'] or [x, {{'a': x['j{k}']}}]" for k in range(200)) + "\nif x: return ['V']"
    )
    assert "steps" not in read_by(source)


EXPRESSIONS = st.recursive(
    st.sampled_from(["q", "x", "state", "'meta'", "1", "f"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: f"{p[0]}[{p[1]}]"),
        st.tuples(inner, inner).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"[{p[0]} for x in {p[1]}]"),
        st.tuples(inner, inner).map(lambda p: f"(lambda x: {p[0]})({p[1]})"),
        inner.map(lambda p: f"({p}).get('domain')"),
    ),
    max_leaves=12,
)


@given(st.lists(EXPRESSIONS, min_size=1, max_size=4))
@settings(deadline=None)
def test_any_gated_source_gets_a_verdict(expressions):
    source = (
        HEAD
        + "def f(x):\n    return x\n"
        + select("x = q\n" + "\n".join(f"x = {e}" for e in expressions) + "\nif x: return ['V']")
    )
    if check(source) == ():
        assert set(unused_signals(source, SIGNALS)) <= set(SIGNALS)
