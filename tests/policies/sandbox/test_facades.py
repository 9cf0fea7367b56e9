import builtins
import math
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from mesa_pipeline.policies.sandbox import facades, gate
from mesa_pipeline.policies.sandbox.facades import BUILTINS, FACADES, METHODS, policy_globals

MEMBERS = [(name, member) for name, members in FACADES.items() for member in members]


@pytest.fixture(scope="module")
def names() -> dict:
    return policy_globals(facades.load_ml())


@pytest.mark.parametrize(("name", "member"), MEMBERS)
def test_what_the_gate_allows_is_bound(names, name, member):
    source = f"META = {{'direction': 'd', 'hypothesis': 'h'}}\ndef select(state, q):\n    return {name}.{member}\n"
    assert gate.check(source) == ()
    exec(source, names)
    assert names["select"](None, {}) is not None


def test_builtins_are_the_allowed_ones(names):
    assert set(names["__builtins__"]) == set(BUILTINS)
    assert all(names["__builtins__"][name] is getattr(builtins, name) for name in BUILTINS)
    assert not {"open", "getattr", "type", "eval", "__import__", "hash", "id", "BaseException", "object"} & set(BUILTINS)


def test_no_namespace_is_a_module_or_leads_to_one(names):
    for name, member in MEMBERS:
        assert not isinstance(names[name], ModuleType)
        assert not isinstance(getattr(names[name], member), ModuleType)


def test_namespaces_have_what_is_listed_and_nothing_else(names):
    for name, members in FACADES.items():
        assert {entry for entry in dir(names[name]) if not entry.startswith("__")} == set(members)


@pytest.mark.parametrize("name", FACADES)
def test_namespaces_cannot_be_changed(names, name):
    facade = names[name]
    with pytest.raises(AttributeError):
        facade.added = 1
    with pytest.raises(AttributeError):
        object.__setattr__(facade, "added", 1)
    for member in FACADES[name]:
        with pytest.raises(AttributeError):
            setattr(facade, member, len)
        with pytest.raises(AttributeError):
            delattr(facade, member)


def test_globals_are_fresh_for_every_policy():
    ml = facades.load_ml()
    first, second = policy_globals(ml), policy_globals(ml)
    first["__builtins__"]["len"] = None
    first["re"] = SimpleNamespace()
    assert second["__builtins__"]["len"] is len
    assert second["re"].search is re.search


def test_members_are_the_library_functions(names):
    assert names["math"].sqrt is math.sqrt
    assert names["math"].pi == math.pi
    assert names["re"].IGNORECASE == 2
    assert type(names["re"].IGNORECASE) is int


def test_no_allowed_attribute_reads_attributes_named_in_data_or_is_private():
    assert (
        not {"format", "format_map", "gi_frame", "tb_frame", "f_back", "cr_frame", "gi_code", "func", "args", "mro"} & METHODS
    )
    assert not [name for name in METHODS if name.startswith("_")]


def test_every_method_belongs_to_a_plain_type():
    pattern = re.compile("")
    import collections
    import itertools
    import statistics

    values = ["", [], {}, set(), 1, 1.0, pattern, pattern.match(""), collections.Counter(), collections.OrderedDict()]
    values += [collections.deque(), itertools.chain, statistics.linear_regression([1, 2], [1, 2])]
    unknown = [name for name in METHODS if not any(hasattr(value, name) for value in values)]
    assert not unknown


def test_loads_by_path_without_the_package():
    """The worker is ``python -I`` with nothing of the project on its path."""
    program = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('facades', {str(Path(facades.__file__))!r})\n"
        "facades = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(facades)\n"
        "names = facades.policy_globals(facades.load_ml())\n"
        "assert names['re'].search('a', 'a')\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'mesa_pipeline']\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
