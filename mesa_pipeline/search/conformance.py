"""Whether a policy reads what its direction is about.

Inputs are named by the keys that lead to them: ``question``, ``meta``, ``meta.domain``, ``previews``, ``previews.tokens``,
``steps`` of the question that ``select`` is given; ``rows`` and ``rows.y`` of what ``fit`` is given. Keys in between, such as
a structure's code, are left out. ``rows`` count as read where ``fit`` uses them and ``select`` looks at the state.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

_Path: TypeAlias = tuple[str, ...]
_Paths: TypeAlias = frozenset[_Path]
_Function: TypeAlias = ast.FunctionDef | ast.Lambda

_ANY = "*"
_NOTHING: _Paths = frozenset()
_LONGEST_PATH = 6
_ROOTS = {"select": ("state", "q"), "fit": ("rows", "ctx")}
_BY_KEY = ("get", "pop", "setdefault")


def unused_signals(source: str, required: Sequence[str]) -> tuple[str, ...]:
    """The required inputs that a policy never reads, in the order given.

    Values are followed through assignments, loops, comprehensions and calls of the source's own functions, without regard to
    the order of statements; a value assigned to a name that nothing reads does not count.

    Args:
        source: A source the gate let through.
        required: Names of inputs, such as ``previews.tokens``.
    """
    reads = _Reading(ast.parse(source)).reads()
    return tuple(signal for signal in required if not _is_read(signal.split("."), reads))


def _is_read(signal: Sequence[str], reads: set[_Path]) -> bool:
    if signal[0] in _ROOTS["fit"]:
        return ("state",) in reads and any(_leads(signal, path) for path in reads)
    return any(path[:2] == ("q", _ANY) or _leads(("q", *signal), path) for path in reads)


def _leads(signal: Sequence[str], path: _Path) -> bool:
    """Whether the keys of ``signal`` stand in ``path`` in order, the first one first."""
    rest = iter(path)
    return path[0] == signal[0] and all(any(key == part for part in rest) for key in signal)


@dataclass
class _Reading:
    """What each name of each function may stand for, grown until nothing changes."""

    tree: ast.Module
    functions: dict[str, _Function] = field(init=False)
    values: dict[tuple[int, str], _Paths] = field(default_factory=dict)
    returned: dict[int, _Paths] = field(default_factory=dict)
    seen: set[_Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.functions = dict(_named_functions(self.tree))

    def reads(self) -> set[_Path]:
        for name, roots in _ROOTS.items():
            function = self.functions.get(name)
            if function is not None:
                self._bind(function, [frozenset({(root,)}) for root in roots])
        while True:
            before = (len(self.seen), dict(self.values), dict(self.returned))
            for name in ("fit", "select"):
                self._follow(name, set())
            if before == (len(self.seen), self.values, self.returned):
                return self.seen

    def _follow(self, name: str, done: set[str]) -> None:
        """Read a function and those that it names."""
        function = self.functions.get(name)
        if function is None or name in done:
            return
        done.add(name)
        _Reader(self, function).run()
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in self.functions:
                self._follow(node.id, done)

    def _bind(self, function: _Function, arguments: Sequence[_Paths], named: Iterable[tuple[str, _Paths]] = ()) -> None:
        parameters = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        for name, paths in (*zip(parameters, arguments, strict=False), *named):
            self.assign(function, name, paths)

    bind = _bind

    def assign(self, function: _Function, name: str, paths: _Paths) -> None:
        key = (id(function), name)
        self.values[key] = self.values.get(key, _NOTHING) | {path for path in paths if len(path) <= _LONGEST_PATH}
