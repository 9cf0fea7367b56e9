"""What a confined child does: read a job, run a policy's code on it or a program that searches, send one reply.

The worker loads this file by its path, so it imports the standard library alone.
"""

import json
import os
import struct
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, NoReturn

LENGTH = struct.Struct("!I")
"""Precedes every frame: its number of bytes."""
POLICY_FILE = "<policy>"
MAX_REASON_CHARS = 300
MAX_CHOICE_CHARS = 1_000
READ_BYTES = 1 << 20


class FrozenDict(dict[str, Any]):
    """A dictionary of the state: reads like any other, refuses to change."""


class FrozenList(list[Any]):
    """A list of the state: reads like any other, refuses to change."""


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("select must not change the state; work on a copy of it")


for _kind, _changes in (
    (FrozenDict, ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update")),
    (
        FrozenList,
        (
            *("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop", "remove"),
            *("reverse", "sort"),
        ),
    ),
):
    for _change in _changes:
        setattr(_kind, _change, _refuse)


def freeze(value: Any) -> Any:
    """A JSON value that cannot be changed, so that one question's selection cannot reach the next."""
    if isinstance(value, dict):
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list):
        return FrozenList(freeze(item) for item in value)
    return value


def fit(policy: Mapping[str, Any], rows: bytes, context: bytes) -> str:
    """JSON of what the policy learns; an object without members where it learns nothing."""
    learn = policy.get("fit")
    if learn is None:
        return '{"state":{}}'
    state = learn(json.loads(rows), json.loads(context))
    _check_keys(state)
    return f'{{"state":{json.dumps(state, allow_nan=False, separators=(",", ":"))}}}'


def _check_keys(value: object) -> None:
    """JSON turns other keys into text without a word, and the policy would look them up in vain."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"a key of the state is {key!r}; JSON knows only text, so write str(key)")
            _check_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_keys(item)


def select(policy: Mapping[str, Any], state: bytes, questions: bytes) -> str:
    """JSON of one reply a question: what ``select`` returned, or an object with its error."""
    choose = policy["select"]
    frozen = freeze(json.loads(state))
    return '{"replies":[' + ",".join([_choose(choose, frozen, question) for question in json.loads(questions)]) + "]}"


def _choose(choose: Callable[[Any, Any], object], state: Any, question: Any) -> str:
    try:
        reply = json.dumps(choose(state, question), allow_nan=False)
        if len(reply) > MAX_CHOICE_CHARS:
            raise ValueError("select returned far more than a list of structures")
    except BaseException as error:
        return json.dumps({"error": describe(error)})
    return reply


def search(program: Mapping[str, Any], steps: bytes) -> str:
    """JSON of what the program finds in a trajectory."""
    return f'{{"found":{json.dumps(program["search"](json.loads(steps)), allow_nan=False, separators=(",", ":"))}}}'


def describe(error: BaseException) -> str:
    """The error in a few words, with the line of the policy it came from."""
    try:
        what = error.msg if isinstance(error, SyntaxError) else error
        text = f"{type(error).__name__}: {what}"[:MAX_REASON_CHARS]
    except BaseException:
        text = "an error that cannot be shown"
    line = error.lineno if isinstance(error, SyntaxError) else None
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == POLICY_FILE:
            line = step.tb_lineno
        step = step.tb_next
    return text if line is None else f"line {line}: {text}"


_PHASES: Mapping[str, tuple[str, Callable[..., str]]] = {
    "fit": ("select", fit),
    "select": ("select", select),
    "search": ("search", search),
}
"""The function that a source must define for a phase, and what is done with it."""


def serve(job: int, names: Mapping[str, Mapping[str, Any]], layers: list[str], probe: Callable[[], object]) -> None:
    """Read a job, run it and send the one reply.

    Args:
        job: Descriptor of the connection.
        names: Globals of the source, by phase.
        layers: The layers of confinement put on.
        probe: Tries what must fail, for a job of the phase ``probe``.
    """
    header = json.loads(_receive(job))
    frames = [_receive(job) for _ in range(header["frames"])]
    try:
        reply = _run(header, frames, names, layers, probe)
    except BaseException as error:
        reply = json.dumps({"error": describe(error)})
    _send(job, reply.encode("ascii"))


def _run(
    header: Mapping[str, Any],
    frames: list[bytes],
    names: Mapping[str, Mapping[str, Any]],
    layers: list[str],
    probe: Callable[[], object],
) -> str:
    if header["phase"] == "probe":
        return json.dumps({"probe": {"layers": layers, "attempts": probe()}})
    missing = [layer for layer in header["layers"] if layer not in layers]
    if missing:
        raise RuntimeError(f"the worker could not confine itself: no {', '.join(missing)}")
    source, *values = frames
    defined = dict(names[header["phase"]])
    exec(_compile(source), defined)
    function, work = _PHASES[header["phase"]]
    if function not in defined:
        raise NameError(f"the {'program' if function == 'search' else 'policy'} defines no function `{function}`")
    return work(defined, *values)


def _compile(source: bytes) -> CodeType:
    return compile(source.decode("utf-8"), POLICY_FILE, "exec", dont_inherit=True)


def _receive(job: int) -> bytes:
    return _read(job, *LENGTH.unpack(_read(job, LENGTH.size)))


def _read(job: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = os.read(job, min(size, READ_BYTES))
        if not part:
            raise EOFError("the host is gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _send(job: int, reply: bytes) -> None:
    rest = memoryview(LENGTH.pack(len(reply)) + reply)
    while rest:
        rest = rest[os.write(job, rest) :]
