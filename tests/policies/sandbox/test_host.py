"""What a policy can do and what becomes of one that breaks the contract."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mesa_pipeline.config import SandboxSettings
from mesa_pipeline.errors import PolicyError, SandboxFailure
from mesa_pipeline.policies.sandbox import Reply, Sandbox, open_sandbox, require_strong
from tests.policies.sandbox.hostile import REACH, forging, framed

CONSTANT = "def select(state, q):\n    return ['S', 'T']\n"
BY_CUE = """
META = {"direction": "lexical-rules"}

def fit(rows, ctx):
    words = sorted({word for row in rows for word in row["question"].split()})
    return {"words": words, "seed": ctx["seed"]}

def select(state, q):
    return ["T"] if q["question"] in state["words"] else ["S", "R"]
"""
NOT_JSON = "select replied with something that is not JSON: "
MARK = {"S": 1, "T": 2, "G": 4, "V": 8, "R": 16}


def questions(*texts: str) -> bytes:
    return json.dumps([{"question": text} for text in texts]).encode()


def chosen(sandbox: Sandbox, source: str, state: Any = None, asked: Sequence[Any] = ({},)) -> list[Reply]:
    return sandbox.select(source, {} if state is None else state, json.dumps(asked).encode())


def reason(sandbox: Sandbox, source: str) -> str:
    with pytest.raises(SandboxFailure) as caught:
        chosen(sandbox, source)
    return str(caught.value)


def test_a_policy_learns_from_rows_and_chooses_by_what_it_learnt(sandbox: Sandbox) -> None:
    state = sandbox.fit(BY_CUE, questions("before after", "when"), {"seed": 7})
    assert state == {"words": ["after", "before", "when"], "seed": 7}
    assert sandbox.select(BY_CUE, state, questions("when", "why")) == [Reply(MARK["T"]), Reply(MARK["S"] | MARK["R"])]


def test_a_policy_without_fit_learns_nothing_and_no_question_needs_no_reply(sandbox: Sandbox) -> None:
    assert sandbox.fit(CONSTANT, b"[]", {}) == {}
    assert sandbox.select(CONSTANT, {}, b"[]") == []


def test_an_error_on_one_question_is_that_questions_alone(sandbox: Sandbox) -> None:
    source = "def select(state, q):\n    return [q['pick']]\n"
    replies = chosen(sandbox, source, asked=[{"pick": "S"}, {}, {"pick": "V"}])
    assert replies == [Reply(MARK["S"]), Reply(error="line 2: KeyError: 'pick'"), Reply(MARK["V"])]


@pytest.mark.parametrize("ending", ["SystemExit", "KeyboardInterrupt", "MemoryError", "GeneratorExit", "BaseException"])
def test_no_exception_ends_the_batch(sandbox: Sandbox, ending: str) -> None:
    source = (
        REACH
        + f"""
def select(state, q):
    if q["odd"]: raise reach("__builtins__")["{ending}"]("gone")
    return ["G"]
"""
    )
    replies = chosen(sandbox, source, asked=[{"odd": True}, {"odd": False}])
    assert replies == [Reply(error=f"line 9: {ending}: gone"), Reply(MARK["G"])]


@pytest.mark.parametrize(
    "change",
    [
        *("state['n'] = 1", "state['list'].append(1)", "state['list'] += [1]", "state['deep']['x'].sort()", "state.pop('n')"),
        *("state['list'][0] = 5", "state.update(n=2)", "state |= {'n': 2}", "state['list'] *= 2", "state.setdefault('z', 1)"),
    ],
)
def test_select_cannot_change_the_state(sandbox: Sandbox, change: str) -> None:
    source = f"def select(state, q):\n    {change}\n    return ['S']\n"
    (reply,) = chosen(sandbox, source, {"n": 0, "list": [1, 2], "deep": {"x": [3, 1]}})
    assert reply.error == "line 2: TypeError: select must not change the state; work on a copy of it"


def test_select_may_change_a_copy_of_the_state(sandbox: Sandbox) -> None:
    source = """
def select(state, q):
    counts = state["n"].copy() | {"T": 3}
    order = sorted(counts, key=counts.get) + state["list"] + [code for code in state["list"]]
    order.append("S")
    return list(dict.fromkeys(order))
"""
    assert chosen(sandbox, source, {"n": {"R": 1}, "list": ["G"]}) == [Reply(MARK["R"] | MARK["T"] | MARK["G"] | MARK["S"])]


def test_select_never_meets_what_fit_saw(sandbox: Sandbox) -> None:
    source = """
SEEN = []
def fit(rows, ctx):
    SEEN.extend(rows)
    return {"seen": len(SEEN)}
def select(state, q):
    return ["S"] if not SEEN and state["seen"] == 1 else ["R"]
"""
    state = sandbox.fit(source, b'[{"y": 1}]', {})
    assert sandbox.select(source, state, b"[{}, {}]") == [Reply(MARK["S"])] * 2


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def select(:", "line 1: SyntaxError: invalid syntax"),
        ("x = 1\ny = z\n", "line 2: NameError: name 'z' is not defined"),
        ("x = 1", "NameError: the policy defines no function `select`"),
        ("x = '\0'", "SyntaxError: source code string cannot contain null bytes"),
        ("x = '\ud800'", "the source holds half a character (a lone surrogate) at position 5"),
        ("import os", "line 1: ImportError: __import__ not found"),
        ("x = [0] * 10**10", "line 1: MemoryError: "),
        ("x = " + "9" * 30_000, "the source has 30,004 bytes; at most 20 kB are accepted"),
        ("def f(): f()\nf()", "line 1: RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_a_source_that_fails_says_where_and_why(sandbox: Sandbox, source: str, expected: str) -> None:
    assert reason(sandbox, source) == expected


def test_a_bomb_for_the_parser_fails_that_candidate_alone(sandbox: Sandbox) -> None:
    assert reason(sandbox, "x = " + "(" * 5_000 + ")" * 5_000)
    assert reason(sandbox, "x = " + "-" * 15_000 + "1")
    assert chosen(sandbox, CONSTANT) == [Reply(MARK["S"] | MARK["T"])]


def test_reasons_are_short_printable_ascii(sandbox: Sandbox) -> None:
    text = reason(sandbox, "raise ValueError('\\u202e\\x1b[31m\\n\\ud800' + 'x' * 100_000)")
    assert text.startswith("line 1: ValueError: \\u202e\\x1b[31m\\n\\ud800xxx")
    assert len(text) <= 300 and text.isascii() and text.isprintable()
    (reply,) = chosen(sandbox, "def select(state, q):\n    raise ValueError('\\u202e' * 1000)\n")
    assert reply.error is not None and len(reply.error) <= 300 and reply.error.isprintable()


@pytest.mark.parametrize("loop", ["while True: pass", "x = 9**9**9", "while True:\n    try: 1/0\n    except: pass"])
def test_a_loop_ends_at_the_deadline(limits: SandboxSettings, loop: str) -> None:
    with Sandbox(limits.model_copy(update={"select_seconds": 0.5})) as sandbox:
        assert reason(sandbox, loop).startswith("select took longer than 0.5 s")
        assert chosen(sandbox, CONSTANT) == [Reply(MARK["S"] | MARK["T"])]


def test_fit_has_its_own_deadline(limits: SandboxSettings) -> None:
    with (
        Sandbox(limits.model_copy(update={"fit_seconds": 0.3})) as sandbox,
        pytest.raises(SandboxFailure, match=r"^fit took longer than 0\.3 s$"),
    ):
        sandbox.fit(CONSTANT + "def fit(rows, ctx):\n    while True: pass\n", b"[]", {})


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("float('nan')", "ValueError: Out of range float values are not JSON compliant"),
        ("{1, 2}", "TypeError: Object of type set is not JSON serializable"),
        ("{'a': {1: 2}}", "TypeError: a key of the state is 1; JSON knows only text, so write str(key)"),
        ("'x' * 300_000", "fit returned a state of 293 kB; at most 256 kB are kept"),
    ],
)
def test_a_state_must_be_small_json(sandbox: Sandbox, returned: str, expected: str) -> None:
    with pytest.raises(SandboxFailure) as caught:
        sandbox.fit(CONSTANT + f"def fit(rows, ctx):\n    return {returned}\n", b"[]", {})
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("build", "expected"),
    [("x = []; x.append(x)", "RecursionError"), ("x = 1\n    for _ in range(200): x = [x]", "nested deeper than 64 levels")],
)
def test_a_state_without_end_is_refused(sandbox: Sandbox, build: str, expected: str) -> None:
    with pytest.raises(SandboxFailure, match=expected):
        sandbox.fit(CONSTANT + f"def fit(rows, ctx):\n    {build}\n    return x\n", b"[]", {})


def test_text_of_any_kind_comes_through_fit_and_select_unchanged(sandbox: Sandbox) -> None:
    odd = ["", "\0", "\ud800 half", "\u202eright to left", "{}%s", "x" * 100_000, "😀", "\u2028"]
    source = """
def fit(rows, ctx):
    return [row["question"] for row in rows]
def select(state, q):
    return ["S"] if q["question"] == state[q["k"]] else ["R"]
"""
    state = sandbox.fit(source, questions(*odd), {})
    assert state == odd
    asked = json.dumps([{"question": text, "k": k} for k, text in enumerate(odd)]).encode()
    assert sandbox.select(source, state, asked) == [Reply(MARK["S"])] * len(odd)


def test_the_two_hash_seeds_order_sets_differently_and_each_the_same_every_time(sandbox: Sandbox) -> None:
    source = "def fit(rows, ctx):\n    return list(set(rows))\n" + CONSTANT
    orders = [sandbox.fit(source, b'["a", "b", "c", "d", "e", "f"]', {}, seed) for seed in (0, 1, 0, 1)]
    assert orders[0] == orders[2] != orders[1] == orders[3]


def test_calls_from_several_threads_run_side_by_side(sandbox: Sandbox) -> None:
    source = "def fit(rows, ctx):\n    return sum(rows) + sum(1 for _ in range(ctx['n']))\n" + CONSTANT
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda k: sandbox.fit(source, json.dumps([k]).encode(), {"n": 1000 * k}, k % 2), range(40)))
    assert found == [k + 1000 * k for k in range(40)]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (framed(b'{"replies":[["S"],["S"]]}'), "select gave 2 replies to 1 questions"),
        (framed(b'{"replies":{"0":["S"]}}'), "select gave no replies to 1 questions"),
        (framed(b'{"replies":[["S"]],"replies":[["T"]]}'), NOT_JSON + "a key stands twice in one object"),
        (framed(b'{"replies":[["S"]],"score":1}'), "select replied with something else than its result"),
        (framed(b'{"state":{}}'), "select replied with something else than its result"),
        (framed(b'{"replies":[NaN]}'), NOT_JSON + "NaN is not JSON"),
        (framed(b"[" * 2_000), NOT_JSON + "nested deeper than 64 levels"),
        (framed(b"\x80\x04K\x01."), NOT_JSON + "'utf-8' codec can't decode byte 0x80 in position 0: invalid start byte"),
        (framed(b'{"replies":[["S"]]}') + " * 2", "the worker sent more than one reply"),
        (framed(b'{"error":"no\\u202e"}'), "no\\u202e"),
        ("b'\\xff\\xff\\xff\\xff'", "the reply has 4,294,967,295 bytes; at most 16,777,216 are read"),
        ("b'\\0\\0\\0\\x09short'", "the worker died in select (exit code 0)"),
        ("b'\\0'", "the worker died in select (exit code 0)"),
        ("b''", "the worker died in select (exit code 0)"),
    ],
)
def test_a_forged_reply_is_the_candidates_own_failure(sandbox: Sandbox, reply: str, expected: str) -> None:
    assert reason(sandbox, forging(reply)) == expected


def test_a_forged_reply_can_say_no_more_than_an_honest_one(sandbox: Sandbox) -> None:
    assert chosen(sandbox, forging(framed(b'{"replies":[["V"]]}'))) == [Reply(MARK["V"])]


def test_a_reply_that_never_ends_meets_the_deadline(limits: SandboxSettings) -> None:
    with Sandbox(limits.model_copy(update={"select_seconds": 0.5})) as sandbox:
        partial = REACH + "reach('write')(3, b'\\0\\0\\x01\\0' + b'x' * 10)\nwhile True: pass\n"
        assert reason(sandbox, partial) == "select took longer than 0.5 s"
        whole = framed(b'{"replies":[["V"]]}')
        held_open = REACH + f"reach('write')(3, {whole})\nwhile True: pass\n"
        assert reason(sandbox, held_open) == "select took longer than 0.5 s"


def test_a_crash_is_told_from_other_deaths(sandbox: Sandbox) -> None:
    crash = REACH + "reach('abort')()\n"
    assert reason(sandbox, crash).startswith("the worker died in select (signal ")
    assert reason(sandbox, REACH + "reach('close')(3)\nwhile True: pass\n").startswith("the worker died in select (signal 9")
    assert chosen(sandbox, CONSTANT) == [Reply(MARK["S"] | MARK["T"])]


def test_what_a_policy_changes_in_its_process_does_not_outlive_it(sandbox: Sandbox) -> None:
    vandal = REACH + "reach('sys').modules['json'].dumps = None\nreach('__builtins__')['len'] = None\n" + CONSTANT
    assert reason(sandbox, vandal) == "the worker died in select (exit code 1)"
    assert chosen(sandbox, CONSTANT + "assert len([1]) == 1\n") == [Reply(MARK["S"] | MARK["T"])]


def test_processes_are_shared_for_equal_settings_and_start_again_after_close(limits: SandboxSettings) -> None:
    sandbox = open_sandbox(limits)
    assert open_sandbox(limits.model_copy()) is sandbox
    assert open_sandbox(limits.model_copy(update={"state_kb": 1})) is not sandbox
    for _ in range(2):
        assert chosen(sandbox, CONSTANT) == [Reply(MARK["S"] | MARK["T"])]
        sandbox.close()


def test_a_strong_sandbox_runs_anyones_code(confined: Sandbox) -> None:
    require_strong(confined, "llm")
    require_strong(confined, "template")


def test_errors_of_the_sandbox_are_policy_errors() -> None:
    assert issubclass(SandboxFailure, PolicyError)
