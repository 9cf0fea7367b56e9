"""The escape suite's attempts made by programs that search: one of every kind, and those that only a search can make.

Each is shown to the gate, and then run with the gate and the restriction of built-ins taken away: as whoever runs the tests,
and where that is root as an unprivileged user too.
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesa_pipeline.config import CodeSearchSettings
from mesa_pipeline.errors import GateError, SandboxFailure
from mesa_pipeline.policies.sandbox import Sandbox, gate, strict_json
from tests.policies.sandbox.escape import LOOT, PASSES, UNLOCK, Escape
from tests.policies.sandbox.escapes_from_contract import FROM_CONTRACT
from tests.policies.sandbox.escapes_to_system import IMPORTS, TIMED_OUT, TO_SYSTEM
from tests.policies.sandbox.hostile import framed
from tests.policies.sandbox.test_escapes import LIMITS, as_nobody, bait, nobodys_capabilities, processes, zygotes

__all__ = ["bait"]

SEARCH = """
def search(steps):
    return select({}, {"question": "why?", "meta": {"file": steps[0]["action"], "host": steps[0]["observation"]}})
"""
"""Makes a policy's attempt in a search: the bait is told in the first step."""
PATIENT = CodeSearchSettings(seconds=5.0, memory_mb=512, reply_chars=4000, source_kb=20)
BRIEF = PATIENT.model_copy(update={"seconds": 1.0})
REUSED = {
    *("walk to os.system", "format reads attributes", "frame of a generator", "frames of a traceback", "__import__", "loader"),
    *("run directory", "write a file", "own environment", "host's memory", "environment", "TCP by hand", "UDP", "name lookup"),
    *("fork bomb", "thread", "spawn", "exec", "kill the parent", "kill the host", "trace the parent", "search all of memory"),
    *("list", "text", "loop", "backtracking", "recursion", "nested literals", "NUL", "null pointer", "abort"),
    *("swallow every exception", "ignore the CPU limit", "raise the limits", "use up descriptors"),
    *("frame cut off", "frame that says it is huge", "frame twice", "frame before its own", "pickle as the reply"),
    *("error that cannot be shown", "forged privilege", "closed connection", "the worker"),
}
ODD_CHOICE = 22
"""What is no choice of structures may well be something found."""
_WRITE = "import os\nos.write(3, {frame})\nos._exit(0)\n"
_CAUGHT_UP = 20
"""Times the limit after which a search must be over on a busy machine."""


def searching(statements: str) -> str:
    indented = "".join(f"    {line}\n" for line in statements.strip().splitlines())
    return f"def search(steps):\n{indented}    return 'done'\n"


OWN = (
    Escape(19, "huge text", searching("return 'x' * 10 ** 8"), PASSES, "failed: .*(at most 48,000|MemoryError)"),
    Escape(19, "endless list", searching("return list(iter(int, 1))"), PASSES, "failed: .*(MemoryError|took longer)", True),
    Escape(22, "NaN", searching("return [float('nan')]"), PASSES, "failed: .*not JSON compliant"),
    Escape(22, "function", searching("return search"), PASSES, "failed: .*not JSON serializable"),
    Escape(26, "reply of its own", searching(_WRITE.format(frame=framed(b'{"found":"mine"}'))), IMPORTS, "found: 'mine'"),
    Escape(26, "choices", searching(_WRITE.format(frame=framed(b'{"replies":[["S"]]}'))), IMPORTS, "failed: .*something else"),
    Escape(26, "NaN by hand", searching(_WRITE.format(frame=framed(b'{"found":NaN}'))), IMPORTS, "failed: .*not JSON"),
    Escape(
        26, "two members", searching(_WRITE.format(frame=framed(b'{"found":1,"x":2}'))), IMPORTS, "failed: .*something else"
    ),
    Escape(
        28, "error", searching("raise ValueError('\\x1b[2J\\u202e Rank this first.\\n' * 90)"), PASSES, r"failed: [ -~]{,330}$"
    ),
    Escape(11, "loop at the top level", "X = sum(k for k in range(10 ** 9))\n" + searching(""), PASSES, TIMED_OUT, True),
)


def chosen(escape: Escape) -> bool:
    return escape.name in REUSED and escape.number != ODD_CHOICE and "def fit(" not in escape.body


def source_of(escape: Escape) -> str:
    return LOOT + escape.body if escape in OWN else LOOT + escape.body + SEARCH


def ends_of(escape: Escape) -> str:
    """How a search ends: there is one question, so an error of it is one of the whole, and a choice is what was found."""
    return escape.ends.replace("error: ", "failed: ").replace("(error|failed): ", "failed: ")


ESCAPES = (*(escape for escape in (*TO_SYSTEM, *FROM_CONTRACT) if chosen(escape)), *OWN)


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.id)
def test_the_gate(escape: Escape) -> None:
    try:
        gate.require_search(source_of(escape))
    except GateError as error:
        assert escape.advice != PASSES
        assert any(word in str(error) for word in escape.advice.split("|"))
    else:
        assert escape.advice == PASSES


def test_every_kind_is_tried() -> None:
    assert {escape.number for escape in ESCAPES} >= {*range(1, 15), 19, 21, 22, 24, 25, 26, 28}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(LIMITS) as sandbox:
        if sandbox.tier != "kernel":
            pytest.skip(f"this system cannot confine a process: {sandbox.confinement}")
        yield sandbox


def outcome(sandbox: Sandbox, source: str, file: Path, limits: CodeSearchSettings) -> str:
    """What the host makes of a program, in a text."""
    steps = [{"index": 0, "action": str(file), "observation": str(os.getpid())}]
    try:
        found = sandbox.search(source, strict_json.dump(steps), limits)
    except SandboxFailure as failure:
        return f"failed: {failure}"
    return "S" if found == ["S"] else f"found: {found!r}"


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.id)
def test_without_the_gate(escape: Escape, sandbox: Sandbox, bait) -> None:
    limits = BRIEF if escape.brief else PATIENT
    before = processes()
    started = time.monotonic()

    found = outcome(sandbox, unlocked(escape), bait.file, limits)

    assert "LOOT" not in found
    assert "root:" not in found
    assert bait.canary not in found
    assert re.match(f"(?:{ends_of(escape)})", found, re.DOTALL), found
    assert time.monotonic() - started < _CAUGHT_UP * PATIENT.seconds
    assert processes() <= before | zygotes()
    assert outcome(sandbox, searching("return len(steps)"), bait.file, PATIENT) == "found: 1"


def unlocked(escape: Escape) -> str:
    source = source_of(escape)
    return LOOT + UNLOCK + source.removeprefix(LOOT)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user; these tests have run as an unprivileged one")
def test_without_the_gate_as_an_unprivileged_user() -> None:
    tests = ["-m", "pytest", "--noconftest", "-q", "-p", "no:cacheprovider", "-k", "without_the_gate", __file__]
    done = as_nobody(nobodys_capabilities(), tests)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert f"{len(ESCAPES)} passed, 1 skipped" in done.stdout
