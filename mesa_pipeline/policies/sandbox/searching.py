"""Programs that a language model wrote to search one trajectory: gated, run confined, and what they find read as text.

A program is Python that defines ``search(steps)``: ``steps`` is a list of dictionaries with ``index``, ``action`` and
``observation``, and what it returns is a JSON value. Which names it may use is in ``facades.SEARCH_FACADES``.
"""

import json
import re
from typing import Any

from mesa_pipeline.config import CodeSearchSettings
from mesa_pipeline.errors import MissingDependency, PolicyError
from mesa_pipeline.policies.sandbox import gate, strict_json
from mesa_pipeline.policies.sandbox.facades import SEARCH_FACADES
from mesa_pipeline.policies.sandbox.grammar import GateLimits
from mesa_pipeline.policies.sandbox.host import Sandbox, require_strong
from mesa_pipeline.policies.sandbox.replies import failure
from mesa_pipeline.types import Trajectory

_IMPORT = re.compile(r"^([ \t]*)import[ \t]+(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*$", re.MULTILINE)
_FROM_IMPORT = re.compile(r"^([ \t]*)from[ \t]+(\w+)[ \t]+import[ \t]+(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*$", re.MULTILINE)


def search(sandbox: Sandbox, limits: CodeSearchSettings, program: str, trajectory: Trajectory) -> str:
    """What a program finds in a trajectory.

    Args:
        sandbox: Where it runs.
        limits: What it may take, and how much it may find.
        program: Its source; hostile input.
        trajectory: What it searches.

    Returns:
        The text it returned, or JSON of any other value; at most ``limits.reply_chars`` characters of valid Unicode.

    Raises:
        GateError: The source is refused.
        SandboxFailure: It failed, overran a limit, or found nothing, too much, or what is no JSON value.
        MissingDependency: This system cannot confine it.
    """
    try:
        require_strong(sandbox, "llm")
    except PolicyError as error:
        raise MissingDependency(str(error)) from error
    source = without_needless_imports(program)
    gate.require_search(source, GateLimits(source_bytes=limits.source_kb * 1024))
    steps = [{"index": step.index, "action": step.action, "observation": step.observation} for step in trajectory.steps]
    return _as_text(sandbox.search(source, strict_json.dump(steps), limits), limits.reply_chars)


def without_needless_imports(program: str) -> str:
    """The program without imports of what is there already, which language models cannot help writing; lines keep their number.

    ``import re`` goes, ``from collections import Counter`` becomes ``Counter = collections.Counter``. Any other import stays,
    and is refused.
    """
    return _FROM_IMPORT.sub(_members, _IMPORT.sub(_nothing, program))


def _nothing(statement: re.Match[str]) -> str:
    if not set(_names(statement[2])) <= SEARCH_FACADES.keys():
        return statement[0]
    return f"{statement[1]}pass" if statement[1] else ""


def _members(statement: re.Match[str]) -> str:
    names, offered = _names(statement[3]), SEARCH_FACADES.get(statement[2], ())
    if not set(names) <= set(offered):
        return statement[0]
    return statement[1] + "; ".join(f"{name} = {statement[2]}.{name}" for name in names)


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",")]


def _as_text(found: Any, most: int) -> str:
    if found is None:
        raise failure("search returned None; return what was found")
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) > most:
        raise failure(f"search returned {len(text):,} characters; at most {most:,} are read: return less")
    return text
