"""Whether a policy reads what its direction is about.

Inputs are named by the keys that lead to them: ``question``, ``meta``, ``meta.domain``, ``previews``, ``previews.tokens``,
``steps`` of the question that ``select`` is given; ``rows`` and ``rows.y`` of what ``fit`` is given. Keys in between, such as
a structure's code, are left out. ``rows`` count as read where ``fit`` uses them and ``select`` looks at the state.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from mesa_pipeline.policies.sandbox.scopes import parse

_Path: TypeAlias = tuple[str, ...]
_Paths: TypeAlias = frozenset[_Path]
_Function: TypeAlias = ast.FunctionDef | ast.Lambda

_ANY = "*"
_NOTHING: _Paths = frozenset()
_ROOTS = {"fit": ("rows", "ctx"), "select": ("state", "q")}
_READ_BY_KEY = frozenset({"get", "pop", "setdefault"})
_LONGEST_PATH = 6
_MOST_PATHS = 100  # of one name: what a policy makes of its own keys must not grow without end
_MOST_ROUNDS = 12  # a value handed on that many times against the order of the source is lost


def unused_signals(source: str, required: Sequence[str]) -> tuple[str, ...]:
    """The required inputs that a policy never reads, in the order given.

    Values are followed through assignments, loops, comprehensions and calls of the source's own functions, without regard to
    the order of statements. Reading a value into a name that nothing uses does not count.

    Args:
        source: A source the gate let through.
        required: Names of inputs, such as ``previews.tokens``.
    """
    unused = tuple(required)
    for reads in _Reading(parse(source)).rounds():
        unused = tuple(signal for signal in unused if not _is_read(signal.split("."), reads))
        if not unused:
            break
    return unused


def _is_read(signal: Sequence[str], reads: set[_Path]) -> bool:
    if signal[0] in _ROOTS["fit"]:
        return ("state",) in reads and any(_leads(signal, path) for path in reads)
    return any(path[:2] == ("q", _ANY) or _leads(("q", *signal), path) for path in reads)


def _leads(signal: Sequence[str], path: _Path) -> bool:
    """Whether the keys of ``signal`` stand in ``path`` in order, the first at its start."""
    rest = iter(path)
    return path[0] == signal[0] and all(any(key == part for part in rest) for key in signal)


class _Reading:
    """What each name may stand for, as paths of keys from the arguments of ``fit`` and ``select``; grown until nothing changes.

    A name is told apart by the top-level function it stands in; functions inside it share its names.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._outer = dict(_named_functions(tree.body))
        self._inner = {name: dict(_named_functions(ast.walk(function))) for name, function in self._outer.items()}
        self._used = {name: _loaded(function) for name, function in self._outer.items()}
        self._values: dict[tuple[str, str], _Paths] = {}
        self._returned: dict[str, _Paths] = {}
        self._reads: set[_Path] = set()
        self._changed = False

    def rounds(self) -> Iterator[set[_Path]]:
        """What is known to be read after each look at the whole source; the last one has it all."""
        for name, roots in _ROOTS.items():
            if name in self._outer:
                self._bind(name, self._outer[name], [frozenset({(root,)}) for root in roots])
        for _ in range(_MOST_ROUNDS):
            self._changed = False
            for name in _reached(self._outer, self._used):
                function = self._outer[name]
                for part in function.body if isinstance(function, ast.FunctionDef) else [function.body]:
                    self._run(name, part)
            yield self._reads
            if not self._changed:
                return

    def _run(self, scope: str, node: ast.AST) -> None:
        """Follow the values through one statement, or expression, and those inside it."""
        if isinstance(node, ast.expr):
            self._value(scope, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._assign(scope, target, node.value)
        elif isinstance(node, ast.Return) and node.value is not None:
            self._returned[scope] = self._grown(self._returned.get(scope, _NOTHING), self._value(scope, node.value))
        else:
            if isinstance(node, ast.For):
                self._store(scope, node.target, _elements(self._value(scope, node.iter)))
            for child in ast.iter_child_nodes(node):
                self._run(scope, child)

    def _assign(self, scope: str, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for part, its_value in zip(target.elts, value.elts, strict=True):
                self._assign(scope, part, its_value)
        elif not isinstance(target, ast.Name) or target.id in self._used[scope]:
            self._store(scope, target, self._value(scope, value))

    def _store(self, scope: str, target: ast.expr, paths: _Paths) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                key = (scope, node.id)
                self._values[key] = self._grown(self._values.get(key, _NOTHING), paths)

    def _grown(self, known: _Paths, more: _Paths) -> _Paths:
        union = known | {path for path in more if len(path) <= _LONGEST_PATH}
        if union == known or len(union) > _MOST_PATHS:
            return known
        self._changed = True
        return union

    def _value(self, scope: str, node: ast.AST) -> _Paths:
        """What an expression may stand for; whatever is read on the way is noted."""
        if isinstance(node, ast.Constant | ast.expr_context | ast.operator | ast.cmpop):
            return _NOTHING
        if isinstance(node, ast.Name):
            paths = self._values.get((scope, node.id), _NOTHING)
        elif isinstance(node, ast.Subscript):
            self._value(scope, node.slice)
            paths = _extended(self._value(scope, node.value), node.slice)
        elif isinstance(node, ast.Call):
            paths = self._call(scope, node)
        elif isinstance(node, ast.NamedExpr):
            paths = self._value(scope, node.value)
            self._store(scope, node.target, paths)
        else:
            for clause in getattr(node, "generators", ()):
                self._store(scope, clause.target, _elements(self._value(scope, clause.iter)))
            paths = _NOTHING.union(*(self._value(scope, child) for child in ast.iter_child_nodes(node)))
        self._reads |= paths
        return paths

    def _call(self, scope: str, node: ast.Call) -> _Paths:
        arguments = [self._value(scope, argument) for argument in node.args]
        named = {keyword.arg: self._value(scope, keyword.value) for keyword in node.keywords}
        passed = _NOTHING.union(*arguments, *named.values())
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self._pass(scope, argument, passed | _elements(passed))
        if isinstance(node.func, ast.Attribute):
            owner = self._value(scope, node.func.value)
            by_key = node.func.attr in _READ_BY_KEY and node.args
            return (_extended(owner, node.args[0]) if by_key else owner) | passed
        called = self._function(scope, node.func)
        if called is None:
            return passed | self._value(scope, node.func)
        self._bind(called[0], called[1], arguments, named)
        return self._returned.get(called[0], _NOTHING) if isinstance(called[1], ast.FunctionDef) else passed

    def _pass(self, scope: str, argument: ast.expr, paths: _Paths) -> None:
        """A function given to another, such as a sort key, may be called with anything given beside it."""
        called = (scope, argument) if isinstance(argument, ast.Lambda) else self._function(scope, argument)
        if called is not None:
            self._bind(*called, [paths] * len(_parameters(called[1])))

    def _function(self, scope: str, node: ast.expr) -> tuple[str, _Function] | None:
        """The source's own function that an expression names, with the top-level function it stands in."""
        name = node.id if isinstance(node, ast.Name) else ""
        if name in self._inner[scope] and name != scope:
            return scope, self._inner[scope][name]
        return (name, self._outer[name]) if name in self._outer else None

    def _bind(
        self,
        scope: str,
        function: _Function,
        arguments: Sequence[_Paths],
        named: Mapping[str | None, _Paths] = MappingProxyType({}),
    ) -> None:
        for name, paths in (*zip(_parameters(function), arguments, strict=False), *named.items()):
            if name is not None:
                self._store(scope, ast.Name(name, ast.Store()), paths)


def _parameters(function: _Function) -> list[str]:
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]


def _named_functions(nodes: Iterator[ast.AST] | Sequence[ast.AST]) -> Iterator[tuple[str, _Function]]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _loaded(function: _Function) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


def _reached(functions: dict[str, _Function], used: dict[str, frozenset[str]]) -> list[str]:
    """The top-level functions that ``fit`` and ``select`` lead to, in a fixed order."""
    reached, waiting = set(), [name for name in _ROOTS if name in functions]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(used[name] & functions.keys())
    return sorted(reached)


def _extended(paths: _Paths, key: ast.expr) -> _Paths:
    literal = key.value if isinstance(key, ast.Constant) else None
    return frozenset((*path, literal if isinstance(literal, str) else _ANY) for path in paths)


def _elements(paths: _Paths) -> _Paths:
    return frozenset((*path, _ANY) for path in paths)
