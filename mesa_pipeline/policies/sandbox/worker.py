"""The process policies run in: a zygote that forks one confined child for each job.

Run by its path in a fresh interpreter with a minimal environment, so that there is nothing of the host in memory to find. The
zygote imports everything once, then does no more than fork: a policy's bytes go from the host straight to the child. A child
serves one job and ends, so nothing of one candidate, nor of fitting, can reach the next.

Beside the files next to it, this file imports the standard library alone.

Protocol. The host sends a request of fixed size and, with it, two sockets: the child's *job* and the zygote's *lifeline*.
On the job, frames of a 4-byte length and that many bytes: a header, the source and two values go in, one reply comes out.
On the lifeline, closing the host's end has the child killed, and its wait status comes back once it has ended.
"""

import gc
import importlib.util
import json
import os
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

REQUEST = struct.Struct("!IQ")
"""CPU seconds and bytes of address space."""
STATUS = struct.Struct("!i")
LENGTH = struct.Struct("!I")
READY = b"ready"
POLICY_FILE = "<policy>"
MAX_REASON_CHARS = 300
MAX_CHOICE_CHARS = 1_000
HOST_CHECK_SECONDS = 1.0
READ_BYTES = 1 << 20

Work = Callable[[int, int, int], object]
"""What a child does, given its job's descriptor, its CPU seconds and its bytes of memory."""


class Zygote:
    """Forks children on request, reports how each ended, and ends with the host."""

    def __init__(self, control: socket.socket, host: int, work: Work) -> None:
        self._control = control
        self._host = host
        self._work = work
        self._lifelines: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Take requests until the host is gone: its socket closes, or this process is handed to another parent."""
        woken, waker = socket.socketpair()
        for end in (woken, waker):
            end.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(woken, selectors.EVENT_READ, lambda: self._reap(woken))
        self._selector.register(self._control, selectors.EVENT_READ, self._accept)
        try:
            while os.getppid() == self._host:
                for key, _ in self._selector.select(HOST_CHECK_SECONDS):
                    key.data()
        except EOFError:
            pass
        finally:
            for child in self._lifelines:
                _kill(child)

    def _accept(self) -> None:
        request, descriptors, _, _ = socket.recv_fds(self._control, REQUEST.size, 2)
        if len(request) < REQUEST.size:
            raise EOFError
        job, lifeline = descriptors
        try:
            child = os.fork()
        except OSError:
            os.close(lifeline)  # the host reads from this that there is no child
        else:
            if child == 0:
                self._become_child(job, request)
            self._watch(child, socket.socket(fileno=lifeline))
        os.close(job)

    def _become_child(self, job: int, request: bytes) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._work(job, *REQUEST.unpack(request))
            os._exit(0)
        finally:
            os._exit(1)

    def _watch(self, child: int, lifeline: socket.socket) -> None:
        def cut() -> None:
            self._selector.unregister(lifeline)
            _kill(child)

        self._lifelines[child] = lifeline
        self._selector.register(lifeline, selectors.EVENT_READ, cut)

    def _reap(self, woken: socket.socket) -> None:
        woken.recv(READ_BYTES)
        with suppress(ChildProcessError):
            while True:
                child, status = os.waitpid(-1, os.WNOHANG)
                if not child:
                    return
                _kill_group(child)
                lifeline = self._lifelines.pop(child)
                with suppress(KeyError):
                    self._selector.unregister(lifeline)
                with lifeline, suppress(OSError):
                    lifeline.sendall(STATUS.pack(status))


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    _kill_group(child)


def _kill_group(child: int) -> None:
    """End what a child may have started where the kernel could not forbid it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


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


def describe(error: BaseException) -> str:
    """The error in a few words, with the line of the policy it came from."""
    try:
        text = f"{type(error).__name__}: {error}"[:MAX_REASON_CHARS]
    except BaseException:
        text = "an error that cannot be shown"
    line = error.lineno if isinstance(error, SyntaxError) else None
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == POLICY_FILE:
            line = step.tb_lineno
        step = step.tb_next
    return text if line is None else f"line {line}: {text}"


def serve_job(job: int, names: Mapping[str, Any], layers: list[str], probe: Callable[[], object]) -> None:
    """Read a job, run it and send the one reply.

    Args:
        job: Descriptor of the connection.
        names: Globals of the policy.
        layers: The layers of confinement put on.
        probe: Tries what must fail, for a job of the phase ``probe``.
    """
    header = json.loads(_receive(job))
    frames = [_receive(job) for _ in range(header["frames"])]
    try:
        reply = _run(header, frames, dict(names), layers, probe)
    except BaseException as error:
        reply = json.dumps({"error": describe(error)})
    _send(job, reply.encode("ascii"))


def _run(
    header: Mapping[str, Any], frames: list[bytes], names: dict[str, Any], layers: list[str], probe: Callable[[], object]
) -> str:
    if header["phase"] == "probe":
        return json.dumps({"probe": {"layers": layers, "attempts": probe()}})
    missing = [layer for layer in header["layers"] if layer not in layers]
    if missing:
        raise RuntimeError(f"the worker could not confine itself: no {', '.join(missing)}")
    source, first, second = frames
    exec(_compile(source), names)
    if "select" not in names:
        raise NameError("the policy defines no function `select`")
    return (fit if header["phase"] == "fit" else select)(names, first, second)


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


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"mesa_policy_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Import what children need, say so, and serve; arguments: the control socket's descriptor and the host's id."""
    control = socket.socket(fileno=int(sys.argv[1]))
    try:
        lockdown, facades = _load("lockdown"), _load("facades")
        ml = facades.load_ml() if Path(__file__).with_name("ml.py").exists() else ModuleType("ml")
        names = facades.policy_globals(ml)
    except Exception as error:
        control.sendall(describe(error).encode("ascii", "replace"))
        return
    zygote = os.getpid()

    def work(job: int, cpu_seconds: int, memory_bytes: int) -> None:
        layers = lockdown.confine(job, lockdown.Limits(cpu_seconds, memory_bytes), zygote)
        serve_job(lockdown.JOB_FD, names, layers, lambda: lockdown.attempts(zygote))

    gc.collect()
    gc.freeze()
    control.sendall(READY)
    Zygote(control, int(sys.argv[2]), work).serve()


if __name__ == "__main__":
    main()
