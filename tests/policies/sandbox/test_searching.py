"""Programs that search a trajectory: what they can do, what is refused, and what becomes of one that misbehaves."""

import json
import platform
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.config import Settings
from mesa_pipeline.errors import GateError, SandboxFailure
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.policies.sandbox.facades import SEARCH_FACADES, search_globals
from mesa_pipeline.policies.sandbox.gate import require_search
from mesa_pipeline.policies.sandbox.searching import search, without_needless_imports
from mesa_pipeline.types import Step, Trajectory
from tests.conftest import REPOSITORY
from tests.policies.sandbox.weak_host import WEAKEN

STEPS = tuple(Step(n, f"open drawer {n % 4}", f'{{"found": {n % 3}}}') for n in range(5, 65))
HISTORY = Trajectory("t", "find the key", STEPS)
ODD = Trajectory("t", "", (Step(0, "\0 \ud800 {}", "\u202ex\U0001f511"), Step(7, "", "")))

Find = Callable[..., str]


@pytest.fixture
def find(confined: Sandbox, settings: Settings) -> Find:
    def find(program: str, history: Trajectory = HISTORY, **limits: object) -> str:
        section = settings.baselines.ama_agent.search.model_copy(update=limits)
        return search(confined, section, program, history)

    return find


def returning(expression: str) -> str:
    return f"def search(steps):\n    return {expression}\n"


def test_a_program_sees_every_step(find: Find) -> None:
    counting = "sum('drawer 2' in step['action'] for step in steps)"
    assert find(returning(counting)) == str(sum(step.index % 4 == 2 for step in STEPS)) == "15"
    assert find(returning("[steps[0]['index'], steps[-1]['index'], sorted(steps[0])]")) == (
        '[5, 64, ["action", "index", "observation"]]'
    )
    assert find(returning("steps"), Trajectory("t", "", ())) == "[]"


def test_observations_are_parsed_as_json(find: Find) -> None:
    program = """
import json, re
from collections import Counter

WANTED = re.compile(r"drawer (\\d)")

def search(steps):
    from itertools import pairwise
    import math
    found = Counter(json.loads(step["observation"])["found"] for step in steps)
    drawers = {WANTED.search(step["action"]).group(1) for step in steps}
    return {"found": found, "drawers": sorted(drawers), "pairs": math.floor(len(list(pairwise(steps))))}
"""
    assert json.loads(find(program)) == {"found": {"0": 20, "1": 20, "2": 20}, "drawers": list("0123"), "pairs": 59}


@pytest.mark.parametrize(
    ("expression", "text"),
    [("'12 times'", "12 times"), ("12", "12"), ("True", "true"), ("(1, 'a')", '[1, "a"]'), ("[]", "[]"), ("'é'", "é")],
)
def test_what_is_returned_is_read_as_text(find: Find, expression: str, text: str) -> None:
    assert find(returning(expression)) == text


def test_odd_steps_are_searched_like_others(find: Find) -> None:
    found = find(returning("[step['action'] + step['observation'] for step in steps]"), ODD)
    assert json.loads(found) == ["\0 ? {}\u202ex\U0001f511", ""]
    found.encode("utf-8")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (returning("None"), "search returned None"),
        (returning("steps[10 ** 3]"), "line 2: IndexError"),
        (returning("json.loads('{')"), "line 2: JSONDecodeError"),
        (returning("{1, 2}"), "not JSON serializable"),
        (returning("float('nan')"), "not JSON compliant"),
        (returning("'x' * 4001"), "4,001 characters; at most 4,000"),
        (returning("'x' * 10 ** 6"), "bytes; at most 48,000"),
        (returning("{1: 'a', '1': 'b'}"), "a key stands twice"),
        (returning("functools.reduce(lambda inner, _: [inner], range(100), 1)"), "nested deeper"),
    ],
)
def test_what_cannot_be_read_is_said(find: Find, program: str, reason: str) -> None:
    with pytest.raises(SandboxFailure, match=reason.replace("*", r"\*")) as caught:
        find(program)
    assert len(str(caught.value)) <= 300
    assert str(caught.value).isascii()


@pytest.mark.parametrize(
    ("program", "advice"),
    [
        ("found = 1\n", "search is missing"),
        ("def search(a, b):\n    return 1\n", "takes exactly one argument"),
        ("search = 1\n", "write def search(steps)"),
        (returning("1") + "for x in [1]:\n    pass\n", "at the top level"),
        ("import os\n" + returning("os.listdir('/')"), "re, math, collections, itertools, statistics, functools, json"),
        ("from collections import abc\n" + returning("1"), "imports are refused"),
        (returning("open('x').read()"), "nothing can be read"),
        (returning("ml.ridge"), "'ml' is not defined"),
        (returning("json.JSONDecoder"), "json has dumps, loads"),
        (returning("().__class__"), "starting with '_'"),
        (returning("'{}'.format(1)"), "write an f-string"),
        ("def search(steps) return", "not valid Python"),
        ("", "search is missing"),
        ("\ud800", "surrogate"),
        ("x" * 30_000, "20480 at most"),
    ],
)
def test_the_gate_says_what_to_write_instead(find: Find, program: str, advice: str) -> None:
    with pytest.raises(GateError) as caught:
        find(program)
    assert advice in str(caught.value)


def test_an_endless_program_is_ended(find: Find) -> None:
    with pytest.raises(SandboxFailure, match="search took longer than 1 s"):
        find("def search(steps):\n    while True:\n        pass\n", seconds=1.0)


def test_a_program_that_wants_too_much_memory_fails(find: Find) -> None:
    with pytest.raises(SandboxFailure, match="MemoryError"):
        find(returning("len([0] * 10 ** 9)"), memory_mb=256)


def test_nothing_is_kept_from_one_program_to_the_next(find: Find) -> None:
    program = "KEPT = []\n\ndef search(steps):\n    KEPT.append(1)\n    return len(KEPT)\n"
    assert [find(program), find(program)] == ["1", "1"]


@given(st.text())
def test_any_text_gets_a_verdict(source: str) -> None:
    try:
        require_search(without_needless_imports(source))
    except GateError as error:
        assert error.violations


@pytest.mark.parametrize(
    ("written", "run"),
    [
        ("import re\nx = 1", "\nx = 1"),
        ("    import json, re", "    pass"),
        ("from re import search, sub", "search = re.search; sub = re.sub"),
        ("    from collections import deque", "    deque = collections.deque"),
        ("import re as r", "import re as r"),
        ("import re, os", "import re, os"),
        ("from os import path", "from os import path"),
        ("from re import enum", "from re import enum"),
        ("from . import re", "from . import re"),
        ("x = 'import re'", "x = 'import re'"),
    ],
)
def test_imports_of_what_is_there_are_left_out(written: str, run: str) -> None:
    assert without_needless_imports(written) == run


def test_the_gate_and_the_worker_agree_on_the_names() -> None:
    names = search_globals()
    assert names.keys() - {"__builtins__", "__name__"} == SEARCH_FACADES.keys()
    for name, members in SEARCH_FACADES.items():
        assert all(hasattr(names[name], member) for member in members)
        require_search("\n".join(f"A{n} = {name}.{member}" for n, member in enumerate(members)) + "\n" + returning("1"))


PROBE = """
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.stages.systems import run_confined
from mesa_pipeline.types import Step, Trajectory
from pathlib import Path
import sys

settings = load_settings(Path("params.yaml"), sys.argv[1:], {})
try:
    print(run_confined(settings, "def search(steps): return len(steps)", Trajectory("t", "", (Step(0, "a", "b"),))))
except MissingDependency as error:
    print("refused:", error)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the calls to forbid are numbered for x86-64")
@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ([], "refused: a language model's code is not run in a weak sandbox"),
        (["policies.sandbox.allow_weak=true"], "1"),
    ],
)
def test_where_nothing_confines_it_a_program_runs_if_allowed_alone(confined: Sandbox, overrides: list[str], said: str) -> None:
    command = [sys.executable, "-c", WEAKEN + PROBE, *overrides]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.startswith(said)
