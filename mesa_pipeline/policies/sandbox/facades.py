"""Everything a policy's source, or a program that searches, can name: one table, read by the gate and bound by the worker.

Neither sees a module. ``re``, ``math`` and the others are frozen namespaces of the functions listed here, because a module
leads anywhere: ``statistics.random``, ``re.enum.sys``. Left out on purpose are ``format`` and ``format_map`` (they read
attributes named in data), ``namedtuple`` (it compiles a string), ``lru_cache`` (memory across questions), endless iterators
(``itertools.count``, ``cycle``, ``repeat``) and whatever knows the time, chance or an address (``hash``, ``id``).

The worker loads this file by its path, in a fresh interpreter and before it is confined: it imports the standard library alone.
To offer policies another function, add its name here.
"""

import builtins
import collections
import functools
import heapq  # noqa: F401 - Counter.most_common imports it when called, which a confined worker cannot
import importlib.util
import itertools
import json
import math
import re
import statistics
import sys
import unicodedata  # noqa: F401 - the compiler imports it for "\N{...}"
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

FACADES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "re": (
            *("compile", "escape", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"),
            *("A", "ASCII", "I", "IGNORECASE", "M", "MULTILINE", "S", "DOTALL", "X", "VERBOSE"),
        ),
        "math": (
            *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "comb", "copysign", "cos", "cosh"),
            *("degrees", "dist", "e", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "factorial", "floor", "fmod", "frexp"),
            *("fsum", "gamma", "gcd", "hypot", "inf", "isclose", "isfinite", "isinf", "isnan", "isqrt", "lcm", "ldexp"),
            *("lgamma", "log", "log10", "log1p", "log2", "modf", "nan", "perm", "pi", "pow", "prod", "radians", "remainder"),
            *("sin", "sinh", "sqrt", "tan", "tanh", "tau", "trunc"),
        ),
        "collections": ("Counter", "OrderedDict", "defaultdict", "deque"),
        "itertools": (
            *("accumulate", "chain", "combinations", "combinations_with_replacement", "compress", "dropwhile", "filterfalse"),
            *("groupby", "islice", "pairwise", "permutations", "product", "starmap", "takewhile", "tee", "zip_longest"),
        ),
        "statistics": (
            *("correlation", "covariance", "fmean", "geometric_mean", "harmonic_mean", "linear_regression", "mean", "median"),
            *("median_high", "median_low", "mode", "multimode", "pstdev", "pvariance", "quantiles", "stdev", "variance"),
        ),
        "functools": ("cmp_to_key", "partial", "reduce"),
        "ml": ("kmeans", "predict", "ridge", "ridge_cv"),
    }
)
"""Members of each namespace. Those of ``ml`` are the public functions of the file ``ml.py`` beside this one."""

SEARCH_FACADES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **{name: FACADES[name] for name in ("re", "math", "collections", "itertools", "statistics", "functools")},
        "json": ("dumps", "loads"),
    }
)
"""The same for a program that searches a trajectory, whose observations are often JSON."""

EXCEPTIONS: tuple[str, ...] = (
    *("ArithmeticError", "AssertionError", "AttributeError", "Exception", "IndexError", "KeyError", "LookupError", "NameError"),
    *("OverflowError", "RuntimeError", "StopIteration", "TypeError", "UnicodeError", "ValueError", "ZeroDivisionError"),
)
"""Exceptions a policy may raise and catch: none that would let it swallow its own ending."""

BUILTINS: tuple[str, ...] = (
    *("abs", "all", "any", "bin", "bool", "callable", "chr", "dict", "divmod", "enumerate", "filter", "float", "frozenset"),
    *("int", "isinstance", "iter", "len", "list", "map", "max", "min", "next", "ord", "pow", "range", "repr", "reversed"),
    *("round", "set", "slice", "sorted", "str", "sum", "tuple", "zip"),
    *EXCEPTIONS,
)
"""Built-in names a policy may use."""

METHODS: frozenset[str] = frozenset(
    (
        # str
        *("capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "index", "isalnum", "isalpha"),
        *("isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle"),
        *("isupper", "join", "ljust", "lower", "lstrip", "maketrans", "partition", "removeprefix", "removesuffix", "replace"),
        *("rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip"),
        *("swapcase", "title", "translate", "upper", "zfill"),
        # list, tuple, deque
        *("append", "appendleft", "clear", "copy", "extend", "extendleft", "insert", "maxlen", "pop", "popleft", "remove"),
        *("reverse", "rotate", "sort"),
        # dict, Counter, OrderedDict
        *("elements", "fromkeys", "get", "items", "keys", "most_common", "move_to_end", "popitem", "setdefault", "subtract"),
        *("total", "update", "values"),
        # set
        *("add", "difference", "difference_update", "discard", "intersection", "intersection_update", "isdisjoint"),
        *("issubset", "issuperset", "symmetric_difference", "symmetric_difference_update", "union"),
        # int, float
        *("bit_count", "bit_length", "is_integer"),
        # compiled patterns and their matches
        *("end", "findall", "finditer", "flags", "fullmatch", "group", "groupdict", "groupindex", "groups", "lastgroup"),
        *("lastindex", "match", "pattern", "search", "span", "start", "sub", "subn"),
        # itertools.chain.from_iterable; the result of statistics.linear_regression
        *("from_iterable", "intercept", "slope"),
    )
)
"""Attributes a policy may read of any value: the methods of Python's plain types and of what the namespaces return."""

_MODULES = {
    "re": re,
    "math": math,
    "collections": collections,
    "itertools": itertools,
    "statistics": statistics,
    "functools": functools,
    "json": json,
}


def load_ml() -> ModuleType:
    """The module ``ml.py`` beside this file, loaded by its path so that the package above is not imported.

    Raises:
        ImportError: The file or numpy is missing.
    """
    path = Path(__file__).with_name("ml.py")
    spec = importlib.util.spec_from_file_location("mesa_policy_ml", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def policy_globals(ml: ModuleType) -> dict[str, Any]:
    """Fresh globals for one policy: the restricted built-ins and every namespace, and nothing else.

    Args:
        ml: The module ``ml.py``, from ``load_ml``.

    Raises:
        AttributeError: A name of the table does not exist.
    """
    return _globals(FACADES, {**_MODULES, "ml": ml})


def search_globals() -> dict[str, Any]:
    """The same for one program that searches.

    Raises:
        AttributeError: A name of the table does not exist.
    """
    return _globals(SEARCH_FACADES, _MODULES)


def _globals(facades: Mapping[str, tuple[str, ...]], modules: Mapping[str, ModuleType]) -> dict[str, Any]:
    namespaces = {name: _facade(name, modules[name], members) for name, members in facades.items()}
    return {"__builtins__": {name: getattr(builtins, name) for name in BUILTINS}, "__name__": "policy", **namespaces}


def _facade(name: str, module: ModuleType, offered: tuple[str, ...]) -> object:
    """An object without a ``__dict__`` whose attributes are the listed members of a module: none can be set or added."""
    members = {member: _member(getattr(module, member)) for member in offered}
    return type(name, (), {"__slots__": (), "__module__": "policy", **members})()


def _member(value: object) -> object:
    """Functions unbound, and flags as plain numbers: an enumeration's member leads to its module."""
    return int(value) if isinstance(value, re.RegexFlag) else staticmethod(value) if callable(value) else value
