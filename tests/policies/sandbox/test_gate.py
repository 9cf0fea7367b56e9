import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.errors import GateError, PolicyError, Violation
from mesa_pipeline.policies.sandbox import gate
from mesa_pipeline.policies.sandbox.grammar import GateLimits
from tests.policies.sandbox.accepted import ACCEPTED
from tests.policies.sandbox.refused import HEAD, REFUSED_SOURCES, REFUSED_STATEMENTS, SELECT, body


@pytest.mark.parametrize("source", ACCEPTED.values(), ids=ACCEPTED)
def test_lets_policies_through_as_proposers_write_them(source):
    assert gate.check(source) == ()


@pytest.mark.parametrize(
    "statements",
    [
        "x = [0] * 3\nx[0] += 1\nx[1:] = (2, 3)",
        "first, *rest = q['question'].split() or ['']",
        "k = {'a': 1} | {'b': 2}\nm = 5 & ~1 ^ 2 << 1",
        "def inner(a, b=None, *c, d=(1, 'x'), **e):\n    return a\ninner(1, **{'z': 2})",
        "y = 2 ** 10 + len(q['question']) ** 0.5 + 10 ** -3",
        "try:\n    z = 1 // 0\nexcept (KeyError, ZeroDivisionError) as error:\n    raise ValueError(str(error)) from error",
        "x: int = 3\nz: list[str] = []",
        "f'{q[\"question\"]!r:>20} {1 / 3:.2f}' + '%s' % 1",
        "local = {}\nlocal['x'] = 1\nlocal.setdefault('y', []).append(2)",
        "n = str.join(' ', ['a']) + dict.fromkeys('ab', 'x').get('a')",
        "m = re.search(r'\\d+', q['question'])\nn = m.group(0) if m else ''",
        "c = list(itertools.chain.from_iterable([[1], [2]])) + [collections.Counter('aab').most_common(1)[0][1]]",
    ],
)
def test_lets_ordinary_python_through(statements):
    assert gate.check(body(statements)) == ()


@pytest.mark.parametrize(("statements", "advice"), REFUSED_STATEMENTS.values(), ids=REFUSED_STATEMENTS)
def test_refuses_with_advice(statements, advice):
    violations = gate.check(body(statements))
    assert any(advice in violation.message for violation in violations), violations


@pytest.mark.parametrize(("source", "advice"), REFUSED_SOURCES.values(), ids=REFUSED_SOURCES)
def test_refuses_a_source(source, advice):
    violations = gate.check(source)
    assert violations
    assert any(advice in violation.message for violation in violations), violations


def test_says_where():
    source = body("x = 1\ny =  type(x)")
    assert gate.check(source) == (Violation(4, 10, "'type' is refused: use isinstance(value, (str, int, float, list, dict))"),)


def test_reports_in_the_order_of_the_source_and_not_without_end():
    violations = gate.check(body("\n".join(["eval('1')"] * 50)))
    assert len(violations) == 20
    assert list(violations) == sorted(violations)


def test_advice_on_thousands_of_mistakes_does_not_take_long():
    started = time.monotonic()
    assert len(gate.check(body("\n".join(f"a{k} = b{k}.c{k}" for k in range(900))))) == 20
    assert time.monotonic() - started < 20


def test_reads_meta_and_fit():
    code = gate.require_valid(ACCEPTED["shrunk lookup"])
    assert code.meta == {"direction": "task-metadata", "hypothesis": "domains differ", "parents": ["ab12"]}
    assert code.has_fit
    assert code.source == ACCEPTED["shrunk lookup"]
    assert not gate.require_valid(ACCEPTED["lexical rules"]).has_fit
    assert gate.require_valid(HEAD + SELECT).meta["parents"] == []


def test_raises_a_policy_error_that_lists_what_is_refused():
    with pytest.raises(GateError, match=r"line 3, column 5: 'eval'") as caught:
        gate.require_valid(body("eval('1')"))
    assert isinstance(caught.value, PolicyError)
    assert len(caught.value.violations) == 1


def test_a_tighter_limit_holds():
    assert gate.check(HEAD + SELECT, GateLimits(source_bytes=10))
    assert gate.check(body("for a in q:\n  for b in q:\n    pass"), GateLimits(loops=1))


def sha256(source: str) -> str:
    return gate.require_valid(source).sha256


def test_fingerprint_ignores_looks():
    plain = HEAD + "LIMIT = 3\ndef select(state, q):\n    n = len(q)\n    return ['S'] if n > LIMIT else ['V']\n"
    dressed = (
        '"""A docstring."""\n# a comment\nMETA = {"direction": "other", "hypothesis": "another"}\nLIMIT: int = 3\n'
        'def select(state: dict, question: dict) -> list:\n    """Choose."""\n'
        "    size = (len(question))  # so many\n    return [\n        'S'\n    ] if size > LIMIT else [\"V\"]\n"
    )
    assert sha256(plain) == sha256(dressed)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = len(q)", "x = sum(q)"),
        ("x = 1\ny = 2\nz = x", "x = 1\ny = 2\nz = y"),
        ("x = [1]\nlen = 3\nreturn x", "x = [1]\nlen = 3\nreturn len"),
        ("def f(a, b):\n    return a\nreturn f(a=1, b=2)", "def f(b, a):\n    return b\nreturn f(a=2, b=1)"),
        ("x = state", "x = q"),
    ],
)
def test_fingerprint_tells_behaviours_apart(one, other):
    assert sha256(body(one)) != sha256(body(other))


def test_fingerprint_tells_keyword_arguments_apart():
    helper = "def f({}):\n    return {}\ndef select(state, q):\n    return f(a='S', b='V')\n"
    assert sha256(HEAD + helper.format("a, b", "a")) != sha256(HEAD + helper.format("b, a", "b"))


@given(st.text(alphabet=st.characters(), max_size=400))
def test_any_text_gets_a_verdict(text):
    assert isinstance(gate.check(text), tuple)
    assert isinstance(gate.check(HEAD + text + SELECT), tuple)
    assert isinstance(gate.check(body(text)), tuple)


WORDS = "def class if else for in while lambda return yield await async with import not and or re math state q eval __class__"
SIGNS = '( ) [ ] { } : , . = ** * @ f\'{ \' """ # -> := 0 1e999 99999999999999999999 Ｓ é'
BLANKS = ("\n", "\n    ", " ", "\\", "\0", "\ud800", "\u202e", "\f", "\r", "\t")
FRAGMENTS = st.sampled_from((*(f" {word} " for word in WORDS.split()), *SIGNS.split(), *BLANKS))


@given(
    st.sampled_from(sorted(ACCEPTED)),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), FRAGMENTS), min_size=1, max_size=6),
)
@settings(max_examples=300, deadline=None)
def test_mutated_policies_get_a_verdict_and_what_passes_compiles(name, edits):
    source = ACCEPTED[name]
    for share, removed, inserted in edits:
        at = int(share * len(source))
        source = source[:at] + inserted + source[at + removed :]
    if gate.check(source) == ():
        compile(source, "policy", "exec")
        assert gate.require_valid(source).sha256


@given(
    st.recursive(
        st.sampled_from(["1", "x", "'a'"]),
        lambda inner: st.tuples(inner, inner).map(lambda p: f"({p[0]} + {p[1]})"),
        max_leaves=300,
    )
)
@settings(max_examples=50, deadline=None)
def test_nested_expressions_get_a_verdict(expression):
    assert isinstance(gate.check(body(f"x = 1\nx = {expression}")), tuple)


@pytest.mark.parametrize("source", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted_policies_survive_unparsing(source):
    """Formatting is no part of the verdict or of the fingerprint."""
    rewritten = ast.unparse(ast.parse(source))
    assert gate.check(rewritten) == ()
    assert sha256(rewritten) == sha256(source)


def test_warnings_of_the_compiler_are_no_verdict(recwarn):
    source = body("x = re.search('\\d', q['question'])\nif x is 1:\n    pass")
    assert gate.check(source) == ()
    assert not recwarn.list


def test_verdicts_are_the_same_under_any_hash_seed():
    program = (
        "from mesa_pipeline.policies.sandbox import gate\n"
        "from mesa_pipeline.search.conformance import unused_signals\n"
        "from tests.policies.sandbox.accepted import ACCEPTED\n"
        "from tests.policies.sandbox.refused import REFUSED_STATEMENTS, body\n"
        "signals = ('question', 'meta.domain', 'previews.text', 'rows.y')\n"
        "verdicts = [gate.check(body(statements)) for statements, _ in REFUSED_STATEMENTS.values()]\n"
        "print(verdicts, [(gate.require_valid(s).sha256, unused_signals(s, signals)) for s in ACCEPTED.values()])\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert said[0] == said[1]
    assert len(said[0]) > 1000
