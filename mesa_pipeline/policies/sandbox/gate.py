"""The first look at a source, before anything of it runs.

A policy is a docstring, ``META``, constants and functions::

    META = {"direction": "lexical-rules", "hypothesis": "...", "parents": ["<sha256>"]}   # literals only
    def fit(rows, ctx): ...       # optional; returns a JSON value
    def select(state, q): ...     # returns a non-empty list drawn from "S", "T", "G", "V", "R"

A program that searches a trajectory is a docstring, constants and functions::

    def search(steps): ...        # returns a JSON value

Any text gets a verdict; no text makes the gate raise anything but ``GateError``.
"""

import ast
import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from mesa_pipeline.errors import GateError, Violation
from mesa_pipeline.policies.sandbox.canonical import canonical_sha256, is_assignment_of
from mesa_pipeline.policies.sandbox.facades import SEARCH_FACADES
from mesa_pipeline.policies.sandbox.grammar import GateLimits, tree_violations
from mesa_pipeline.policies.sandbox.scopes import kept_between_calls, parse, quietly

_POLICY: Mapping[str, tuple[str, ...]] = {"fit": ("rows", "ctx"), "select": ("state", "q")}
_SEARCH: Mapping[str, tuple[str, ...]] = {"search": ("steps",)}
"""The functions of each kind of source that have a signature."""
_MAX_REPORTED = 20
_MAX_CHARS = 600
DEFAULT_LIMITS = GateLimits()


@dataclass(frozen=True)
class PolicyCode:
    """A source the gate let through.

    Attributes:
        source: The text.
        meta: The value of ``META``: strings under ``direction`` and ``hypothesis``, a list of strings under ``parents``.
        has_fit: Whether it learns a state.
        sha256: Fingerprint of what it does, equal for sources that differ in looks alone (see ``canonical_sha256``).
    """

    source: str
    meta: Mapping[str, Any]
    has_fit: bool
    sha256: str


def check(source: str, limits: GateLimits = DEFAULT_LIMITS) -> tuple[Violation, ...]:
    """What is refused in a source, the first 20 in its order; empty when the gate lets it through."""
    try:
        require_valid(source, limits)
    except GateError as error:
        return error.violations
    return ()


def require_valid(source: str, limits: GateLimits = DEFAULT_LIMITS) -> PolicyCode:
    """The source with what the gate read in it.

    Raises:
        GateError: Something in it is refused; says what, where, and what to write instead.
    """
    tree = _parsed(source, limits)
    first = islice(tree_violations(tree, limits), _MAX_REPORTED)
    _refuse({*first, *kept_between_calls(tree), *_outline_violations(tree, _POLICY), *_policy_violations(tree)})
    _compile(tree)
    functions = {statement.name for statement in tree.body if isinstance(statement, ast.FunctionDef)}
    return PolicyCode(source, _meta(tree), "fit" in functions, canonical_sha256(source))


def require_search(source: str, limits: GateLimits = DEFAULT_LIMITS) -> None:
    """Lets a program that searches a trajectory pass.

    Raises:
        GateError: Something in it is refused; says what, where, and what to write instead.
    """
    tree = _parsed(source, limits)
    first = islice(tree_violations(tree, limits, SEARCH_FACADES), _MAX_REPORTED)
    _refuse({*first, *_outline_violations(tree, _SEARCH), *_search_violations(tree)})
    _compile(tree)


def _refuse(violations: Set[Violation]) -> None:
    """The first of them in the order of the source, where there are any."""
    if violations:
        raise GateError([_plain(violation) for violation in sorted(violations)[:_MAX_REPORTED]])


def _parsed(source: str, limits: GateLimits) -> ast.Module:
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        raise _refused("the text holds half of a surrogate pair and is not valid Unicode", source[: error.start]) from error
    if size > limits.source_bytes:
        raise _refused(f"the source has {size} bytes, {limits.source_bytes} at most: learn what is long in fit")
    if "\0" in source:
        raise _refused("the source holds a NUL character: delete it", source[: source.index("\0")])
    try:
        return parse(source)
    except SyntaxError as error:
        raise _invalid(error) from error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        raise _refused(f"the source cannot be parsed ({type(error).__name__}): it is nested too deeply") from error


def _compile(tree: ast.Module) -> None:
    """Refuses what only the compiler sees, such as ``return`` outside a function."""
    try:
        with quietly():
            compile(tree, "policy", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _invalid(error) from error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        raise _refused(f"the source cannot be compiled ({type(error).__name__}): make it simpler") from error


def _invalid(error: SyntaxError) -> GateError:
    message = f"not valid Python: {error.msg}"
    return GateError([_plain(Violation(max(error.lineno or 1, 1), max(error.offset or 1, 1), message))])


def _plain(violation: Violation) -> Violation:
    """A message may quote the source, and is shown to people and proposers: printable ASCII, and not long."""
    message = violation.message.encode("unicode_escape").decode("ascii")
    return replace(violation, message=message if len(message) <= _MAX_CHARS else message[: _MAX_CHARS - 3] + "...")


def _refused(message: str, before: str = "") -> GateError:
    """A refusal at the end of the text ``before``."""
    return GateError([Violation(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1, message)])


def _outline_violations(tree: ast.Module, signatures: Mapping[str, tuple[str, ...]]) -> Iterator[Violation]:
    """What is wrong with the top level."""
    names = [name for statement in tree.body for name in _defined(statement)]
    for index, statement in enumerate(tree.body):
        docstring = index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not _defined(statement):
            yield _at(statement, "at the top level stand a docstring, constants (NAME = value) and functions alone")
        for name in _defined(statement):
            if names.count(name) > 1:
                yield _at(statement, f"'{name}' is defined more than once at the top level")
            if name in signatures:
                yield from _signature_violations(statement, name, signatures[name])


def _policy_violations(tree: ast.Module) -> Iterator[Violation]:
    if not _defines(tree, "select"):
        yield Violation(1, 1, "select is missing: define select(state, q) returning a list such as ['S', 'V']")
    yield from _meta_violations(tree)


def _search_violations(tree: ast.Module) -> Iterator[Violation]:
    if not _defines(tree, "search"):
        yield Violation(1, 1, "search is missing: define search(steps) returning what was found")


def _defines(tree: ast.Module, name: str) -> bool:
    return any(name in _defined(statement) for statement in tree.body)


def _defined(statement: ast.stmt) -> list[str]:
    """The one name a permitted top-level statement defines; empty for any other statement."""
    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    complete = isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
    return [target.id for target in targets if isinstance(target, ast.Name)] if complete and len(targets) == 1 else []


def _signature_violations(statement: ast.stmt, name: str, parameters: tuple[str, ...]) -> Iterator[Violation]:
    wanted = f"{name}({', '.join(parameters)})"
    if not isinstance(statement, ast.FunctionDef):
        yield _at(statement, f"'{name}' is a function: write def {wanted}")
        return
    arguments = statement.args
    plain = [*arguments.posonlyargs, *arguments.args]
    if len(plain) != len(parameters) or arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        count = "two arguments" if len(parameters) == 2 else "one argument"
        yield _at(statement, f"{name} takes exactly {count} without defaults: write def {wanted}")


def _meta_violations(tree: ast.Module) -> Iterator[Violation]:
    example = 'META = {"direction": "...", "hypothesis": "...", "parents": []}'
    statement = next((statement for statement in tree.body if is_assignment_of(statement, "META")), None)
    if statement is None:
        yield Violation(1, 1, f"META is missing: add {example}")
        return
    try:
        meta = _meta(tree)
        json.dumps(meta, allow_nan=False)
    except (ValueError, TypeError, RecursionError, MemoryError):
        yield _at(statement, f"META is made of literals alone, with text, numbers, lists and dictionaries: {example}")
        return
    if not isinstance(meta, dict):
        yield _at(statement, f"META is a dictionary: {example}")
        return
    for key in ("direction", "hypothesis"):
        if not isinstance(meta.get(key), str) or not meta[key].strip():
            yield _at(statement, f'META["{key}"] is a text: {example}')
    parents = meta["parents"]
    if not isinstance(parents, list) or not all(isinstance(parent, str) for parent in parents):
        yield _at(statement, f'META["parents"] is a list of fingerprints: {example}')


def _meta(tree: ast.Module) -> Any:
    statement = next(statement for statement in tree.body if is_assignment_of(statement, "META"))
    assert isinstance(statement, ast.Assign | ast.AnnAssign)
    value = ast.literal_eval(statement.value) if statement.value is not None else None
    return {"parents": [], **value} if isinstance(value, dict) else value


def _at(node: ast.stmt, message: str) -> Violation:
    return Violation(node.lineno, node.col_offset + 1, message)
