"""What a policy may use must work once the worker is confined: nothing can be imported then."""

from mesa_pipeline.policies.sandbox import Reply, Sandbox

NUMERICS = """
def fit(rows, ctx):
    x = [[float((i * 7 + j * 3) % 11) for j in range(4)] for i in range(40)]
    y = [[row[0] + 2 * row[1], row[2]] for row in x]
    model = ml.ridge_cv(x, y, [i % 4 for i in range(40)], [1e-6, 1.0])
    return {"model": model, "plain": ml.ridge(x, y, 0.0), "centres": ml.kmeans(x, 3)}

def select(state, q):
    (values,) = ml.predict(state["plain"], [[1.0, 2.0, 3.0, 4.0]])
    return ["S"] if [round(value, 6) for value in values] == [5.0, 3.0] and len(state["centres"]) == 3 else ["R"]
"""
LIBRARY = r"""
def select(state, q):
    words = re.findall(r"\w+", q["question"].casefold(), re.IGNORECASE)
    common = [word for word, _ in collections.Counter(words).most_common(1)]
    middle = statistics.quantiles([math.log1p(len(word)) for word in words], n=4)
    slope = statistics.linear_regression([1, 2, 3], [2, 4, 6]).slope
    pairs = list(itertools.pairwise(words))
    total = functools.reduce(lambda a, b: a + b, map(len, words))
    marks = "%s %5.1f %d" % (common, total, len(pairs)) + f"{slope:.1f}" + "\N{BULLET}" + q["question"].title()
    return ["G"] if common == ["the"] and slope == 2.0 and middle and marks else ["R"]
"""


def test_linear_algebra_runs_confined(sandbox: Sandbox) -> None:
    state = sandbox.fit(NUMERICS, b"[]", {})
    assert sandbox.select(NUMERICS, state, b"[{}]") == [Reply(1)]


def test_the_offered_part_of_the_standard_library_runs_confined(sandbox: Sandbox) -> None:
    assert sandbox.select(LIBRARY, {}, b'[{"question": "The first and the last of the steps"}]') == [Reply(4)]
