"""Runs policies and programs that search in confined processes, and believes nothing they say without checking it."""

import functools
import json
import math
import os
import signal
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from mesa_pipeline.config import CodeSearchSettings, SandboxSettings
from mesa_pipeline.errors import PolicyError, SandboxFailure
from mesa_pipeline.policies.sandbox import strict_json, tiers
from mesa_pipeline.policies.sandbox.exchange import exchange
from mesa_pipeline.policies.sandbox.replies import Reply, failure, read_choices, read_member
from mesa_pipeline.policies.sandbox.zygote import Limits, Zygote
from mesa_pipeline.types import State

HashSeed: TypeAlias = Literal[0, 1]
Origin: TypeAlias = Literal["template", "llm"]
_Phase: TypeAlias = Literal["probe", "fit", "select", "search"]
_BYTES_PER_CHAR = 12
"""Of JSON in ASCII, which escapes a character beyond the first plane as two halves."""
_TRIES = 2
"""A job lost to the system says nothing about the candidate: once more, before it is held against it."""
_STOOD_STILL_SECONDS = 1.0
"""A deadline noticed this late was missed by this process as well: it was stopped, or the machine was."""
_SIGNAL_MEANINGS = {"SIGSYS": "forbidden system call", "SIGKILL": "killed, perhaps for want of memory"}


@dataclass(frozen=True)
class _Job:
    """What one child is given, and how long and how much it may take."""

    phase: _Phase
    frames: Sequence[bytes]
    seconds: float
    memory_mb: int
    reply_bytes: int


class Sandbox:
    """Fits and applies policies given as source code, each job in a child of its own that is gone afterwards.

    ``select`` runs in a child that never saw a training row. Methods may be called from several threads at once; the jobs then
    run side by side. The processes behind it start when first needed, start again when they died, and end with ``close``, with
    the context, with the interpreter, or with the host however it dies. After ``close`` the next call starts them again.

    Args:
        settings: Limits of one job.
    """

    def __init__(self, settings: SandboxSettings) -> None:
        self.settings = settings
        self._zygotes: Mapping[HashSeed, Zygote] = {0: Zygote(0), 1: Zygote(1)}
        self._confinement: tiers.Confinement | None = None
        self._probing = threading.Lock()
        self._finalizer = weakref.finalize(self, _close_all, tuple(self._zygotes.values()))

    @property
    def tier(self) -> tiers.Tier:
        """How strong the confinement is, found out by trying it once."""
        return self.confinement.tier

    @property
    def confinement(self) -> tiers.Confinement:
        """The layers in force and what they did not stop.

        Raises:
            MissingDependency: Workers do not start on this system.
            SandboxFailure: The self-test itself broke down.
        """
        with self._probing:
            if self._confinement is None:
                reply = self._run(self._job("probe", []), (), 0)
                report = read_member(reply, "probe", "probe")
                self._confinement = tiers.judge(report)
            return self._confinement

    def fit(self, source: str, rows: bytes, context: Mapping[str, Any], hash_seed: HashSeed = 0) -> State:
        """What the policy learns from training rows; ``{}`` from one without a ``fit``.

        Args:
            source: The policy's code.
            rows: JSON array of n training rows, UTF-8.
            context: Further JSON values for ``fit``.
            hash_seed: Which of two orders of sets the process has; a policy must not depend on it.

        Raises:
            SandboxFailure: The code failed, overran a limit, or returned what is no JSON value of ``state_kb`` at most.
            MissingDependency: Workers do not start on this system.
        """
        frames = [_encoded(source, self.settings.source_kb), rows, strict_json.dump(context)]
        reply = self._run(self._job("fit", frames), self.confinement.layers, hash_seed)
        state = read_member(reply, "fit", "state")
        size = len(strict_json.dump(state))
        if size > self.settings.state_kb * 1024:
            raise failure(f"fit returned a state of {size / 1024:,.0f} kB; at most {self.settings.state_kb} kB are kept")
        return state

    def select(self, source: str, state: State, questions: bytes, hash_seed: HashSeed = 0) -> list[Reply]:
        """What the policy chooses for each question, independently: the state it is handed cannot be changed.

        Args:
            source: The policy's code.
            state: What ``fit`` returned.
            questions: JSON array of n questions, UTF-8.
            hash_seed: Which of two orders of sets the process has; a policy must not depend on it.

        Returns:
            n replies, in order.

        Raises:
            SandboxFailure: The code failed as a whole or overran a limit; a failure on one question is that question's reply.
            MissingDependency: Workers do not start on this system.
        """
        frames = [_encoded(source, self.settings.source_kb), strict_json.dump(state), questions]
        reply = self._run(self._job("select", frames), self.confinement.layers, hash_seed)
        return read_choices(read_member(reply, "select", "replies"), _count(questions))

    def search(self, source: str, steps: bytes, limits: CodeSearchSettings) -> Any:
        """What a program finds in a trajectory.

        Args:
            source: The program's code.
            steps: JSON array of the steps, UTF-8.
            limits: Of this one job.

        Returns:
            A JSON value of at most ``limits.reply_chars`` characters.

        Raises:
            SandboxFailure: The code failed, overran a limit, or returned what is no JSON value, or too much of it.
            MissingDependency: Workers do not start on this system.
        """
        frames = [_encoded(source, limits.source_kb), steps]
        job = _Job("search", frames, limits.seconds, limits.memory_mb, limits.reply_chars * _BYTES_PER_CHAR)
        return read_member(self._run(job, self.confinement.layers, 0), "search", "found")

    def close(self) -> None:
        """End the processes behind this sandbox."""
        _close_all(tuple(self._zygotes.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _job(self, phase: Literal["probe", "fit", "select"], frames: Sequence[bytes]) -> _Job:
        seconds = self.settings.fit_seconds if phase == "fit" else self.settings.select_seconds
        return _Job(phase, frames, seconds, self.settings.memory_mb, self.settings.reply_mb * 2**20)

    def _run(self, job: _Job, layers: Sequence[str], hash_seed: HashSeed) -> bytes:
        header = strict_json.dump({"phase": job.phase, "layers": list(layers), "frames": len(job.frames)})
        limits = Limits(math.ceil(job.seconds), job.memory_mb * 2**20)
        for _ in range(_TRIES):
            with self._zygotes[hash_seed].fork(limits) as child:
                deadline = time.monotonic() + job.seconds
                try:
                    return exchange(child.job, [header, *job.frames], deadline, job.reply_bytes)
                except TimeoutError:
                    lost = time.monotonic() - deadline > _STOOD_STILL_SECONDS
                    reason = failure(f"{job.phase} took longer than {job.seconds:g} s")
                except ConnectionError:
                    code = child.end()
                    lost = code in (None, -signal.SIGKILL)
                    reason = _death(job.phase, job.seconds, code)
            if not lost:
                break
        raise reason


def _encoded(source: str, most_kb: int) -> bytes:
    try:
        encoded = source.encode("utf-8")
    except UnicodeEncodeError as error:
        raise failure(f"the source holds half a character (a lone surrogate) at position {error.start}") from None
    if len(encoded) > most_kb * 1024:
        raise failure(f"the source has {len(encoded):,} bytes; at most {most_kb} kB are accepted")
    return encoded


def _death(phase: _Phase, seconds: float, code: int | None) -> SandboxFailure:
    """Why a child is gone, from its exit code; ``None`` when its zygote is gone, too."""
    if code is None:
        return failure(f"the worker of {phase} could not be started, or died with its parent, {_TRIES} times")
    if code == -signal.SIGXCPU:
        return failure(f"{phase} took longer than {seconds:g} s of CPU time")
    if code >= 0:
        return failure(f"the worker died in {phase} (exit code {code})")
    name = signal.Signals(-code).name if -code in list(signal.Signals) else "unknown"
    return failure(f"the worker died in {phase} (signal {-code}: {_SIGNAL_MEANINGS.get(name, name)})")


def require_strong(sandbox: Sandbox, origin: Origin) -> None:
    """Refuse to run a language model's code where the kernel cannot confine it, unless the settings allow it.

    Raises:
        PolicyError: The code is not to be run here; says what to do.
    """
    if origin == "template" or sandbox.settings.allow_weak or sandbox.tier == "kernel":
        return
    raise PolicyError(
        f"a language model's code is not run in a weak sandbox ({sandbox.confinement}); {tiers.REMEDY}, or accept the risk "
        "with policies.sandbox.allow_weak=true"
    )


@functools.cache
def _opened(settings: SandboxSettings, owner: int) -> Sandbox:
    return Sandbox(settings)


def open_sandbox(settings: SandboxSettings) -> Sandbox:
    """The one sandbox this process has for equal settings."""
    return _opened(settings, os.getpid())


@functools.lru_cache(maxsize=8)
def _count(questions: bytes) -> int:
    """Number of questions in a batch; a search asks the same few batches of every candidate."""
    return len(json.loads(questions))


def _close_all(zygotes: Sequence[Zygote]) -> None:
    for zygote in zygotes:
        zygote.close()
