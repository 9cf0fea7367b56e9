"""One fingerprint for all sources that differ in their looks alone."""

import ast
import hashlib
from collections.abc import Iterator

from mesa_pipeline.policies.sandbox.facades import BUILTINS, FACADES
from mesa_pipeline.policies.sandbox.scopes import bound_names, parse


def canonical_sha256(source: str) -> str:
    """Fingerprint of what a gated source does.

    Comments, formatting, docstrings, annotations, ``META`` and the names of a function's own variables do not change it.
    Two sources with one fingerprint choose alike; two with different ones may, too.
    """
    stripped = _Stripped().visit(parse(source))
    # A renamed keyword argument could swap two parameters unseen.
    kept = {node.arg for node in ast.walk(stripped) if isinstance(node, ast.keyword) and node.arg}
    kept |= {*BUILTINS, *FACADES, *_module_names(stripped)}
    body = [
        _Renamed(kept).visit(statement) if isinstance(statement, ast.FunctionDef) else statement for statement in stripped.body
    ]
    text = "\n".join(ast.dump(statement) for statement in body)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _module_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for statement in tree.body:
        names |= {statement.name} if isinstance(statement, ast.FunctionDef) else bound_names(statement)
    return names


class _Stripped(ast.NodeTransformer):
    """Drops what has no effect."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        node.body = [statement for statement in _without_docstring(node.body) if not is_assignment_of(statement, "META")]
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = _without_docstring(node.body) or [ast.Pass()]
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.Pass() if node.value is None else ast.Assign([node.target], node.value)

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        node.kind = None
        return node


class _Renamed(ast.NodeTransformer):
    """Numbers one function's variables by first appearance; ``kept`` are the names that mean something outside it."""

    def __init__(self, kept: set[str]) -> None:
        self._kept = kept
        self._own: frozenset[str] | None = None
        self._numbers: dict[str, str] = {}

    def _number(self, name: str) -> str:
        if self._own is None or name not in self._own:
            return name
        return self._numbers.setdefault(name, f"{len(self._numbers)}")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if self._own is None:
            self._own = bound_names(node) - self._kept
        else:
            node.name = self._number(node.name)
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._number(node.arg)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        node.name = node.name and self._number(node.name)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._number(node.id)
        return node


def is_assignment_of(statement: ast.stmt, name: str) -> bool:
    """Whether a statement is ``name = ...``, annotated or not."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return isinstance(statement, ast.Assign | ast.AnnAssign) and [getattr(target, "id", None) for target in targets] == [name]


def documentation(tree: ast.Module) -> Iterator[ast.Constant]:
    """The docstrings of a source: of the module and of every function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef) and (docstring := _docstring(node.body)):
            yield docstring


def _docstring(body: list[ast.stmt]) -> ast.Constant | None:
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    return first if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    return body[1:] if _docstring(body) else body
