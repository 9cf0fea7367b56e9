"""The part of Python a policy, or a program that searches, may be written in: an allow-list of syntax, names and attributes.

It gives their author messages to learn from. It is not the security boundary, which is the confined worker.
"""

import ast
import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mesa_pipeline.errors import Violation
from mesa_pipeline.policies.sandbox.facades import BUILTINS, FACADES, METHODS
from mesa_pipeline.policies.sandbox.scopes import bound_names

_ALLOWED_NODES: tuple[type[ast.AST], ...] = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Lambda, ast.Expr, ast.Pass, ast.Assert),
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.While, ast.If, ast.Break, ast.Continue),
    *(ast.Try, ast.ExceptHandler, ast.Raise, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call),
    *(ast.keyword, ast.Starred, ast.Dict, ast.Set, ast.List, ast.Tuple, ast.ListComp, ast.SetComp, ast.DictComp),
    *(ast.GeneratorExp, ast.comprehension, ast.JoinedStr, ast.FormattedValue, ast.Constant, ast.Attribute, ast.Subscript),
    *(ast.Slice, ast.Name, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop),
)
_INSTEAD: dict[type[ast.AST], str] = {
    ast.Import: "imports are refused: delete the line, {provided} are already there",
    ast.ImportFrom: "imports are refused: delete the line, {provided} are already there",
    ast.ClassDef: "classes are refused: use functions and dictionaries",
    ast.With: "'with' is refused: there is nothing to open",
    ast.Yield: "generators are refused: return a list",
    ast.YieldFrom: "generators are refused: return a list",
    ast.Global: "'global' is refused: pass values as arguments and return them",
    ast.Nonlocal: "'nonlocal' is refused: pass values as arguments and return them",
    ast.Delete: "'del' is refused: use pop, or build a new value",
    ast.Match: "'match' is refused: use if and elif",
    ast.TryStar: "'except*' is refused: use except",
    ast.AsyncFunctionDef: "'async' is refused: write a plain function",
    ast.AsyncFor: "'async' is refused: write a plain loop",
    ast.AsyncWith: "'async' is refused: there is nothing to wait for",
    ast.Await: "'await' is refused: there is nothing to wait for",
    ast.MatMult: "'@' is refused: sum the products",
}
_REFUSED_NAMES: dict[str, str] = {
    **dict.fromkeys(("eval", "exec", "compile"), "code is not run from text"),
    **dict.fromkeys(("getattr", "setattr", "delattr", "hasattr", "vars"), "read dictionaries with value.get(key)"),
    **dict.fromkeys(("globals", "locals", "dir", "help", "breakpoint"), "nothing can be inspected"),
    **dict.fromkeys(("open", "input", "print"), "nothing can be read or written; return the result"),
    **dict.fromkeys(("type", "object", "super"), "use isinstance(value, (str, int, float, list, dict))"),
    **dict.fromkeys(("id", "hash"), "its value changes from run to run; compare or sort the values themselves"),
    **dict.fromkeys(("memoryview", "bytes", "bytearray"), "use str and list"),
    **dict.fromkeys(("BaseException", "SystemExit", "KeyboardInterrupt", "MemoryError"), "catch Exception or a narrower one"),
}
_REFUSED_ATTRIBUTES: dict[str, str] = {
    "format": "write an f-string, or 'text %s' % value",
    "format_map": "write an f-string, or 'text %s' % value",
    "encode": "compare and slice the text itself",
}
_FRESH = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Call)


@dataclass(frozen=True)
class GateLimits:
    """How large a policy's source may be, and what stands in it.

    Attributes:
        source_bytes: Length of the source in UTF-8.
        depth: Nesting of the syntax tree; each ``elif`` counts as one level.
        loops: Nesting of ``for`` and ``while``.
        integer: Largest integer literal.
        string_chars: Longest string literal.
        exponent: Largest constant exponent, and shift.
    """

    source_bytes: int = 20 * 1024
    depth: int = 100
    loops: int = 4
    integer: int = 10**9
    string_chars: int = 4000
    exponent: int = 64


class _Place(NamedTuple):
    """A node on its way to be checked. ``position`` is its own or, where it has none, its parent's."""

    node: ast.AST
    position: tuple[int, int]
    depth: int
    loops: int


@dataclass(frozen=True)
class _Context:
    limits: GateLimits
    facades: Mapping[str, tuple[str, ...]]
    bound: frozenset[str]


def tree_violations(
    tree: ast.Module, limits: GateLimits, facades: Mapping[str, tuple[str, ...]] = FACADES
) -> Iterator[Violation]:
    """What a parsed source holds beyond the allowed syntax, names, attributes and sizes, in the order of the source.

    Each is looked for only when asked for: advice takes longer than a verdict, and a hostile source can call for a lot of it.
    """
    context = _Context(limits, facades, bound_names(tree))
    for place in sorted(_places(tree, context), key=lambda place: place.position):
        yield from (Violation(*place.position, message) for message in _messages(place, context))


def _places(tree: ast.Module, context: _Context) -> Iterator[_Place]:
    """Every node to check: not what lies within a refused one, nor the name that a namespace's member is read of."""
    waiting = [_Place(tree, (1, 1), 0, 0)]
    while waiting:
        place = waiting.pop()
        yield place
        if isinstance(place.node, ast.Attribute) and _is_facade(place.node.value, context):
            continue
        if isinstance(place.node, _ALLOWED_NODES) and place.depth <= context.limits.depth:
            waiting.extend(_below(place, child) for child in ast.iter_child_nodes(place.node))


def _below(place: _Place, child: ast.AST) -> _Place:
    line = getattr(child, "lineno", None)
    position = place.position if line is None else (line, getattr(child, "col_offset", 0) + 1)
    return _Place(child, position, place.depth + 1, place.loops + isinstance(child, ast.For | ast.While))


def _messages(place: _Place, context: _Context) -> Iterator[str]:
    node, limits = place.node, context.limits
    if not isinstance(node, _ALLOWED_NODES) or isinstance(node, ast.MatMult):
        instead = _INSTEAD.get(type(node), f"'{type(node).__name__}' is not part of the language of policies")
        yield instead.format(provided=", ".join(context.facades))
        return
    if place.depth > limits.depth:
        yield f"nested deeper than {limits.depth} levels: split it into functions, or loop over a list of rules"
    if place.loops > limits.loops and isinstance(node, ast.For | ast.While):
        yield f"loops nested deeper than {limits.loops}: move the inner ones into a function"
    for identifier in _identifiers(node):
        if identifier.startswith("__"):
            yield f"names starting with '__' are refused ({identifier}): choose another"
    rule = _RULES.get(type(node))
    if rule is not None:
        yield from rule(node, context)


def _identifiers(node: ast.AST) -> Iterator[str]:
    for field in ("id", "arg", "name"):
        value = getattr(node, field, None)
        if isinstance(value, str):
            yield value


def _is_facade(node: ast.AST, context: _Context) -> bool:
    return isinstance(node, ast.Name) and node.id in context.facades and isinstance(node.ctx, ast.Load)


def _name(node: ast.Name, context: _Context) -> Iterator[str]:
    yield from _binding(node.id)
    if node.id in context.facades and isinstance(node.ctx, ast.Load):
        yield f"'{node.id}' is not a value of its own: write {node.id}.{(*context.facades[node.id], 'function')[0]}(...)"
    elif node.id not in (*BUILTINS, *context.facades, *_REFUSED_NAMES) and node.id not in context.bound:
        yield f"'{node.id}' is not defined{_nearest(node.id, (*BUILTINS, *context.facades, *context.bound))}"
    elif node.id in context.facades:
        yield f"'{node.id}' cannot be given another value: choose another name"


def _binding(name: str) -> Iterator[str]:
    if name in _REFUSED_NAMES:
        yield f"'{name}' is refused: {_REFUSED_NAMES[name]}"


def _argument(node: ast.arg, context: _Context) -> Iterator[str]:
    yield from _binding(node.arg)
    if node.arg in context.facades:
        yield f"'{node.arg}' cannot be given another value: choose another name"


def _attribute(node: ast.Attribute, context: _Context) -> Iterator[str]:
    if not isinstance(node.ctx, ast.Load):
        yield f"attributes cannot be set (.{node.attr}): keep values in a dictionary"
    elif isinstance(node.value, ast.Name) and node.value.id in context.facades:
        members = context.facades[node.value.id]
        if node.attr not in members:
            yield f"'{node.value.id}.{node.attr}' is not offered: {node.value.id} has {', '.join(members) or 'nothing'}"
    elif node.attr.startswith("_"):
        yield f"attributes starting with '_' are refused (.{node.attr})"
    elif node.attr not in METHODS:
        instead = _REFUSED_ATTRIBUTES.get(node.attr)
        reason = instead or f'entries of a dictionary are read as value["{node.attr}"]' + _nearest(node.attr, tuple(METHODS))
        yield f"attribute .{node.attr} is refused: {reason}"


def _nearest(word: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word[:100], sorted(known), n=1)
    return f"; is {close[0]!r} meant?" if close else ""


def _constant(node: ast.Constant, context: _Context) -> Iterator[str]:
    value, limits = node.value, context.limits
    if isinstance(value, int) and value > limits.integer:
        yield f"integer literals end at {limits.integer}: use a float, or a smaller number"
    elif isinstance(value, str):
        if len(value) > limits.string_chars:
            yield f"string literals end at {limits.string_chars} characters: learn what is long in fit"
        if any("\ud800" <= char <= "\udfff" for char in value):
            yield "a string literal holds half of a surrogate pair: leave it out"
    elif value is ... or isinstance(value, bytes | complex):
        kind = "'...'" if value is ... else f"{type(value).__name__} literals"
        yield f"{kind} is refused: use numbers and text"


def _operation(node: ast.BinOp | ast.AugAssign, context: _Context) -> Iterator[str]:
    if not isinstance(node.op, ast.Pow | ast.LShift):
        return
    right = node.right if isinstance(node, ast.BinOp) else node.value
    if any(isinstance(part, ast.Name | ast.Call | ast.Subscript | ast.Attribute) for part in ast.walk(right)):
        return
    literal = right.operand if isinstance(right, ast.UnaryOp) else right
    value = literal.value if isinstance(literal, ast.Constant) else None
    if not isinstance(value, int | float) or value > context.limits.exponent:
        yield f"a constant exponent or shift is one number of at most {context.limits.exponent}"


def _function(node: ast.FunctionDef | ast.Lambda, context: _Context) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef):
        yield from _binding(node.name)
        if node.decorator_list:
            yield "decorators are refused: call the function you need"
        if node.name in context.facades:
            yield f"'{node.name}' cannot be given another value: choose another name"
    for default in (*node.args.defaults, *node.args.kw_defaults):
        if default is not None and any(isinstance(part, _FRESH) for part in ast.walk(default)):
            yield "a default value is a constant (it would be kept between calls): use None and make the value in the body"


def _try(node: ast.Try, context: _Context) -> Iterator[str]:
    if node.finalbody:
        yield "'finally' is refused: put the statements after the try"


def _handler(node: ast.ExceptHandler, context: _Context) -> Iterator[str]:
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    if not all(isinstance(kind, ast.Name) for kind in kinds):
        yield "except names the exceptions it catches: except (KeyError, ValueError)"
    if node.name in context.facades:
        yield f"'{node.name}' cannot be given another value: choose another name"


def _raise(node: ast.Raise, context: _Context) -> Iterator[str]:
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if raised is not None and not isinstance(raised, ast.Name):
        yield 'raise names the exception: raise ValueError("why")'


def _comprehension(node: ast.comprehension, context: _Context) -> Iterator[str]:
    if node.is_async:
        yield "'async' is refused: write a plain loop"


_RULES: dict[type[ast.AST], Callable[..., Iterator[str]]] = {
    ast.Name: _name,
    ast.arg: _argument,
    ast.Attribute: _attribute,
    ast.Constant: _constant,
    ast.BinOp: _operation,
    ast.AugAssign: _operation,
    ast.FunctionDef: _function,
    ast.Lambda: _function,
    ast.Try: _try,
    ast.ExceptHandler: _handler,
    ast.Raise: _raise,
    ast.comprehension: _comprehension,
}
