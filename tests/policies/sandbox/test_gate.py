import ast
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.errors import GateError, PolicyError, Violation
from mesa_pipeline.policies.sandbox import gate
from mesa_pipeline.policies.sandbox.grammar import GateLimits
from tests.policies.sandbox.accepted import ACCEPTED

HEAD = 'META = {"direction": "free", "hypothesis": "h"}\n'
SELECT = "def select(state, q):\n    return ['S']\n"


def body(statements: str) -> str:
    """A policy whose ``select`` starts with these statements."""
    return f"{HEAD}def select(state, q):\n{textwrap.indent(statements, '    ')}\n    return ['S']\n"


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


# What a proposer writes, and a word of the advice it gets.
REFUSED_STATEMENTS = {
    "import": ("import re", "re, math, collections"),
    "from import": ("from os import path", "imports are refused"),
    "class": ("class A:\n    pass", "functions and dictionaries"),
    "with": ("with q as x:\n    pass", "nothing to open"),
    "yield": ("yield 1", "return a list"),
    "yield from": ("yield from []", "return a list"),
    "global": ("global x", "as arguments"),
    "nonlocal": ("x = 1\ndef f():\n    nonlocal x", "as arguments"),
    "del": ("x = {}\ndel x['a']", "use pop"),
    "match": ("match q:\n    case _:\n        pass", "if and elif"),
    "async def": ("async def f():\n    pass", "plain function"),
    "async comprehension": ("x = [a async for a in q]", "async"),
    "await": ("async def f():\n    await q", "async"),
    "except star": ("try:\n    pass\nexcept* ValueError:\n    pass", "use except"),
    "finally": ("try:\n    pass\nfinally:\n    pass", "after the try"),
    "bare except": ("try:\n    pass\nexcept:\n    pass", "names the exceptions"),
    "computed except": ("try:\n    pass\nexcept q['x']:\n    pass", "names the exceptions"),
    "except base": ("try:\n    pass\nexcept BaseException:\n    pass", "catch Exception"),
    "except memory": ("try:\n    pass\nexcept MemoryError:\n    pass", "catch Exception"),
    "raise a value": ("raise q['error']", "raise names"),
    "raise exit": ("raise SystemExit(0)", "SystemExit"),
    "decorator": ("@len\ndef f():\n    pass", "decorators"),
    "mutable default": ("def f(seen=[]):\n    pass", "kept between calls"),
    "called default": ("def f(seen=dict()):\n    pass", "kept between calls"),
    "lambda default": ("f = lambda x={}: x", "kept between calls"),
    "keyword default": ("def f(*, seen={}):\n    pass", "kept between calls"),
    "hidden default": ("def f(seen=(1, [])):\n    pass", "kept between calls"),
    "set attribute": ("select.calls = 1", "attributes cannot be set"),
    "set facade": ("re.search = len", "attributes cannot be set"),
    "augmented attribute": ("q.x += 1", "attributes cannot be set"),
    "loop into attribute": ("for q.x in []:\n    pass", "attributes cannot be set"),
    "dunder name": ("__import__('os')", "'__'"),
    "dunder argument": ("def f(__x):\n    pass", "'__'"),
    "dunder keyword": ("dict(__class__=1)", "'__'"),
    "dunder function": ("def __getattr__(x):\n    pass", "'__'"),
    "dunder except": ("try:\n    pass\nexcept ValueError as __e:\n    pass", "'__'"),
    "dunder attribute": ("().__class__", "'_'"),
    "private attribute": ("collections.Counter()._keep_positive", "'_'"),
    "private member": ("collections._sys", "collections has Counter"),
    "unlisted member": ("statistics.random", "statistics has correlation"),
    "endless iterator": ("itertools.count()", "itertools has accumulate"),
    "flag's module": ("re.enum.sys", "re has compile"),
    "namedtuple": ("collections.namedtuple('a', 'b')", "collections has"),
    "lru_cache": ("functools.lru_cache", "functools has cmp_to_key"),
    "format": ("'{0.x}'.format(q)", "f-string"),
    "format_map": ("'{a}'.format_map(q)", "f-string"),
    "bare format": ("f = 'x'.format", "f-string"),
    "frame of a generator": ("(x for x in []).gi_frame", ".gi_frame"),
    "dictionary as object": ("x = q.question", 'value["question"]'),
    "misspelt method": ("q['question'].strp()", "'strip'"),
    "namespace as value": ("x = re", "re.compile"),
    "namespace as argument": ("len(math)", "math."),
    "shadowed namespace": ("re = 1", "choose another name"),
    "shadowing argument": ("def f(math):\n    pass", "choose another name"),
    "shadowing function": ("def ml():\n    pass", "choose another name"),
    "shadowing loop": ("for re in []:\n    pass", "choose another name"),
    "getattr": ("getattr(q, 'x')", "value.get(key)"),
    "eval": ("eval('1')", "not run from text"),
    "open": ("open('/etc/passwd')", "nothing can be read"),
    "print": ("print(q)", "return the result"),
    "type": ("type(q)", "isinstance"),
    "hash": ("hash(q)", "run to run"),
    "undefined": ("x = undefined_thing", "not defined"),
    "misspelt": ("x = sortd([])", "'sorted'"),
    "numpy": ("x = np.mean([])", "not defined"),
    "huge integer": ("x = 10000000000", "1000000000"),
    "hex integer": ("x = 0x" + "f" * 4000, "1000000000"),
    "huge text": ("x = '" + "a" * 4001 + "'", "4000 characters"),
    "surrogate": ("x = '\\ud800'", "surrogate"),
    "bytes": ("x = b'a'", "bytes literals"),
    "complex": ("x = 3j", "complex literals"),
    "ellipsis": ("...", "'...'"),
    "power tower": ("x = 9 ** 9 ** 9", "exponent"),
    "power": ("x = 9 ** 1000", "exponent"),
    "power in place": ("x = 9\nx **= 1000", "exponent"),
    "shift": ("x = 1 << 1000", "exponent"),
    "matrix product": ("x = q @ q", "'@'"),
    "loops": ("for a in q:\n for a in q:\n  while a:\n   for b in q:\n    for c in q:\n     pass", "deeper than 4"),
    "syntax": ("x = = 1", "not valid Python"),
    "break outside": ("break", "not valid Python"),
    "set constant": ("META['x'] = 1", "constant of the module"),
    "change constant deep": ("META['parents'].append(1)", "constant of the module"),
    "deep": ("x = " + "[" * 90 + "]" * 90 + "\ny = " + "-" * 200 + "1", "deeper than 100"),
}


@pytest.mark.parametrize(("statements", "advice"), REFUSED_STATEMENTS.values(), ids=REFUSED_STATEMENTS)
def test_refuses_with_advice(statements, advice):
    violations = gate.check(body(statements))
    assert any(advice in violation.message for violation in violations), violations


REFUSED_SOURCES = {
    "empty": ("", "select is missing"),
    "no select": (HEAD, "select is missing"),
    "no meta": (SELECT, "META is missing"),
    "computed meta": ('META = {"direction": str(1), "hypothesis": "h"}\n' + SELECT, "literals alone"),
    "meta not a dictionary": ("META = [1]\n" + SELECT, "META is a dictionary"),
    "meta not JSON": ('META = {"direction": "d", "hypothesis": "h", "x": {1}}\n' + SELECT, "literals alone"),
    "meta infinite": ('META = {"direction": "d", "hypothesis": "h", "x": 1e999}\n' + SELECT, "literals alone"),
    "meta without hypothesis": ('META = {"direction": "d"}\n' + SELECT, 'META["hypothesis"]'),
    "meta with a blank direction": ('META = {"direction": " ", "hypothesis": "h"}\n' + SELECT, 'META["direction"]'),
    "meta with odd parents": ('META = {"direction": "d", "hypothesis": "h", "parents": "x"}\n' + SELECT, 'META["parents"]'),
    "meta twice": (HEAD + HEAD + SELECT, "more than once"),
    "select twice": (HEAD + SELECT + SELECT, "more than once"),
    "select as a lambda": (HEAD + "select = lambda state, q: ['S']\n", "def select(state, q)"),
    "select of one": (HEAD + "def select(q):\n    return ['S']\n", "exactly two arguments"),
    "select with a default": (HEAD + "def select(state, q=None):\n    return ['S']\n", "exactly two arguments"),
    "select of any": (HEAD + "def select(*a):\n    return ['S']\n", "exactly two arguments"),
    "fit of three": (HEAD + "def fit(rows, ctx, seed):\n    return 1\n" + SELECT, "fit(rows, ctx)"),
    "fit as a constant": (HEAD + "fit = None\n" + SELECT, "def fit(rows, ctx)"),
    "statement": (HEAD + "if True:\n    X = 1\n" + SELECT, "top level"),
    "loop": (HEAD + "for i in range(3):\n    pass\n" + SELECT, "top level"),
    "call": (HEAD + "len([])\n" + SELECT, "top level"),
    "change at the top level": (HEAD + "X = {}\nX['a'] = 1\n" + SELECT, "top level"),
    "two targets": (HEAD + "X = Y = 1\n" + SELECT, "top level"),
    "global list": (HEAD + "SEEN = []\ndef select(state, q):\n    SEEN.append(1)\n    return ['S']\n", "'SEEN'"),
    "nothing but blanks": (" \n\t\n", "missing"),
    "bad indentation": (HEAD + "  " + SELECT, "not valid Python"),
    "NUL": (HEAD + SELECT + "\0", "NUL"),
    "lone surrogate": (HEAD + "# \ud800\n" + SELECT, "surrogate"),
    "huge": (HEAD + SELECT + "#" * 20_480, "20480 at most"),
    "parentheses": ("x = " + "(" * 9000 + ")" * 9000, ""),
    "minus signs": ("x = " + "-" * 20_000 + "1", ""),
    "long sum": (HEAD + "X = " + "+".join("1" * 9000) + "\n" + SELECT, ""),
    "long chain": (HEAD + "X = a" + ".b" * 5000 + "\n" + SELECT, ""),
    "calls": (HEAD + "X = a" + "()" * 9000 + "\n" + SELECT, ""),
    "lambdas": (HEAD + "X = " + "lambda:" * 2500 + "0\n" + SELECT, ""),
    "f-strings": (HEAD + "X = " + "f'{" * 2 + "1" + "}'" * 2 + "\n" + SELECT, ""),
    "indentation": (
        HEAD + "def f():\n" + "".join(" " * k + "if 1:\n" for k in range(1, 120)) + " " * 120 + "pass\n" + SELECT,
        "",
    ),
    "digits": (HEAD + f"X = {'9' * 5000}\n" + SELECT, ""),
}


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
