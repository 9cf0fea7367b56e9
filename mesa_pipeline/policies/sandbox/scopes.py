"""A policy's source as a syntax tree: the names it gives a value, and the values that would live from call to call."""

import ast
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from mesa_pipeline.errors import Violation

_MUTATORS = frozenset(
    (
        *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "insert"),
        *("intersection_update", "move_to_end", "pop", "popitem", "popleft", "remove", "reverse", "rotate", "setdefault"),
        *("sort", "subtract", "symmetric_difference_update", "update"),
    )
)


_ALONE = threading.Lock()


@contextmanager
def quietly() -> Iterator[None]:
    """For parsing and compiling: without Python's warnings about style, and in one thread at a time.

    CPython 3.11 counts the depth of a tree in one place for all threads, and its warning filters are shared too.
    """
    with _ALONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def parse(source: str) -> ast.Module:
    """The tree of a source, without Python's warnings about its style.

    Raises:
        SyntaxError: It is not Python.
        MemoryError, RecursionError, ValueError: It is nested too deeply, or holds NUL or half a character.
    """
    with quietly():
        return ast.parse(source)


def bound_names(tree: ast.AST) -> frozenset[str]:
    """Every name that is given a value somewhere below ``tree``, whatever the scope."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ExceptHandler) and node.name:
            names.add(node.name)
    return frozenset(names)


def kept_between_calls(tree: ast.Module) -> Iterator[Violation]:
    """Where functions change a module-level value, a memory from question to question; aliases escape it."""
    constants = {
        node.id for statement in tree.body if not isinstance(statement, ast.FunctionDef) for node in _stored(statement)
    }
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        shared = constants - bound_names(function)
        for node in ast.walk(function):
            changed = _changed(node)
            if isinstance(changed, ast.Name) and changed.id in shared:
                message = (
                    f"'{changed.id}' is a constant of the module and is not changed: copy it, or keep the value in the state"
                )
                yield Violation(changed.lineno, changed.col_offset + 1, message)


def _stored(statement: ast.AST) -> Iterator[ast.Name]:
    return (node for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _changed(node: ast.AST) -> ast.AST | None:
    """The innermost value that a node changes in place, where it does."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        target: ast.AST = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
        target = node.func.value
    else:
        return None
    while isinstance(target, ast.Subscript):
        target = target.value
    return target
