"""Ask: answer one person's question over one trajectory, reading only what a frozen policy selects."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import Layout, is_current, slug
from mesa_pipeline.config import PreviewsSettings
from mesa_pipeline.evaluation.sweep import Reading
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.llm.metering import metered
from mesa_pipeline.policies.base import PolicyInput
from mesa_pipeline.policies.budget import TokenBudget
from mesa_pipeline.policies.budgeted_reading import BudgetedReading, read_within
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.reading.previews import preview
from mesa_pipeline.stages.storage import read_memory, trajectory_fingerprint, write_memory
from mesa_pipeline.structures.base import MemoryStructure
from mesa_pipeline.tracking.traces import Span, Trace, TraceRecorder
from mesa_pipeline.types import Answer, ComposedEvidence, Evidence, Trajectory


class Selector(Protocol):
    """A fitted policy."""

    @property
    def reads_previews(self) -> bool: ...

    def select(self, question: PolicyInput) -> int: ...

    def explain(self, question: PolicyInput, chosen: int) -> str: ...


@dataclass(frozen=True)
class AskResult:
    """An answer with everything it rests on.

    Attributes:
        answer: The reader's answer.
        subset: Mask of the structures read; 0 where a token budget left room for none.
        reason: Why they were read, in one line.
        evidence: What was read of each structure, by code.
        composed: The evidence as the reader saw it, with its tokens.
        seconds: Wall time by phase: build, retrieve, answer.
        trace: All of it as spans, in texts of bounded size.
        budget: What a token budget changed; ``None`` where there was none.
    """

    answer: Answer
    subset: int
    reason: str
    evidence: Mapping[str, Evidence]
    composed: ComposedEvidence
    seconds: Mapping[str, float]
    trace: Trace
    budget: BudgetedReading | None = None


@dataclass(frozen=True)
class MemoryShelf:
    """Memories of trajectories asked about, built on first use and kept in the workspace."""

    structures: Mapping[str, MemoryStructure[Any]]
    layout: Layout

    def open(self, code: str, trajectory: Trajectory, trace: TraceRecorder) -> Any:
        """The memory of a trajectory in one structure, built unless a current one is kept."""
        structure = self.structures[code]
        expected = structure.memory_fingerprint(trajectory_fingerprint(trajectory))
        key = slug(trajectory.id)
        if not is_current(self.layout.memory(structure.name, key), expected):
            shown = {"trajectory": trajectory.id, "steps": len(trajectory.steps)}
            with trace.span(f"build {structure.name}", "TOOL", **shown) as span:
                with _asked(span):
                    memory = structure.build(trajectory)
                write_memory(self.layout, structure, key, memory, {"fingerprint": expected, "episode_id": trajectory.id})
        return read_memory(self.layout, structure, key)


def ask(
    question: str,
    trajectory: Trajectory,
    policy: Selector,
    memories: MemoryShelf,
    reading: Reading,
    previews: PreviewsSettings,
    budget: TokenBudget | None = None,
) -> AskResult:
    """Answer a question.

    Only the structures that the policy selects are built and read, but for two cases in which all five are built and
    retrieved from: a policy that reads previews, and a budget that the selected evidence does not fit.

    Args:
        question: The question.
        trajectory: What it is about.
        policy: Chooses the structures; it is shown no benchmark label.
        memories: Builds memories, and keeps them for the next question.
        reading: Composes and answers.
        previews: How much of each structure's evidence a policy that reads previews is shown.
        budget: Most evidence tokens to read; by default as many as the policy's choice has.
    """
    trace = TraceRecorder()
    with trace.span("ask", "CHAIN", question=question) as whole:
        retrieval = _Retrieval(question, trajectory, memories, trace)
        asked, subset, reason = _selected(policy, retrieval, previews, reading.counter)
        within = _read_within(budget, subset, asked, retrieval, reading.counter) if budget else None
        if within:
            subset, evidence, composed = within.subset, within.evidence, within.composed
            reason = f"{reason}; {within.reason}"
        else:
            evidence = retrieval.of(subsets.decode(subset))
            composed = _composed(evidence, subset, retrieval, reading.counter)
        answer = _answered(retrieval, composed, reading)
        whole.gave(answer=answer.text)
        whole.has(trajectory=trajectory.id, structures=_label(subset), reason=reason, evidence_tokens=composed.tokens)
    return AskResult(answer, subset, reason, evidence, composed, retrieval.seconds, trace.trace, within)


class _Selected(NamedTuple):
    asked: PolicyInput
    subset: int
    reason: str


def _selected(policy: Selector, retrieval: "_Retrieval", previews: PreviewsSettings, counter: TokenCounter) -> _Selected:
    with retrieval.trace.span("select", "CHAIN", question=retrieval.question, previews=policy.reads_previews) as span:
        glimpses: Mapping[str, Evidence] = retrieval.glimpses(subsets.STRUCTURE_CODES) if policy.reads_previews else {}
        shown = {code: preview(evidence, previews, counter) for code, evidence in glimpses.items()}
        asked = PolicyInput(retrieval.question, {}, len(retrieval.trajectory.steps), shown)
        with _asked(span):
            subset = policy.select(asked)
        reason = policy.explain(asked, subset)
        span.gave(structures=_label(subset), reason=reason)
        return _Selected(asked, subset, reason)


def _read_within(
    budget: TokenBudget, wanted: int, asked: PolicyInput, retrieval: "_Retrieval", counter: TokenCounter
) -> BudgetedReading:
    with retrieval.trace.span("compose", "TOOL", structures=_label(wanted), limit=budget.limit) as span:
        within = read_within(budget, wanted, asked, retrieval.of, counter)
        _tell_composed(span, within.subset, within.composed)
        return within


def _composed(
    evidence: Mapping[str, Evidence], subset: int, retrieval: "_Retrieval", counter: TokenCounter
) -> ComposedEvidence:
    with retrieval.trace.span("compose", "TOOL", structures=_label(subset)) as span:
        composed = Composer(evidence, counter).compose(subset)
        _tell_composed(span, subset, composed)
        return composed


def _tell_composed(span: Span, subset: int, composed: ComposedEvidence) -> None:
    span.gave(evidence=composed.text, tokens={part.structure: part.tokens for part in composed.sections})
    span.has(subset=_label(subset), evidence_tokens=composed.tokens)


def _answered(retrieval: "_Retrieval", composed: ComposedEvidence, reading: Reading) -> Answer:
    """The reader's answer; a trace's tokens are those of the evidence and of the answer, not of a prompt around them."""
    question, task = retrieval.question, retrieval.trajectory.task
    with (
        retrieval.trace.span("answer", "LLM", question=question, task=task, evidence_tokens=composed.tokens) as span,
        _timed(retrieval.seconds, "answer"),
    ):
        answer = reading.reader.answer(question, task, composed)
        span.gave(answer=answer.text)
        span.has(model=reading.reader.name)
        span.spent(composed.tokens, reading.counter.count(answer.text))
        span.error = answer.error or ""
        return answer


def _label(subset: int) -> str:
    return subsets.label(subset) if subset else "none"


@dataclass
class _Retrieval:
    """Evidence for one question, from each structure at most once and only when it is asked for."""

    question: str
    trajectory: Trajectory
    memories: MemoryShelf
    trace: TraceRecorder
    seconds: dict[str, float] = field(default_factory=lambda: {"build": 0.0, "retrieve": 0.0})
    _found: dict[str, Evidence] = field(default_factory=dict)

    def of(self, codes: Iterable[str]) -> dict[str, Evidence]:
        return {code: self._evidence(code) for code in codes}

    def glimpses(self, codes: Iterable[str]) -> dict[str, Evidence]:
        """What previews are made of: the evidence itself, but where that would ask a language model."""
        return {code: self._glimpse(code) for code in codes}

    def _glimpse(self, code: str) -> Evidence:
        structure = self.memories.structures[code]
        if structure.previews_evidence:
            return self._evidence(code)
        memory = self._memory(code)
        with (
            self.trace.span(f"preview {structure.name}", "RETRIEVER") as span,
            _timed(self.seconds, "retrieve"),
            _asked(span),
        ):
            return structure.preview(memory, self.question)

    def _evidence(self, code: str) -> Evidence:
        if code not in self._found:
            structure, memory = self.memories.structures[code], self._memory(code)
            with (
                self.trace.span(f"retrieve {structure.name}", "RETRIEVER", question=self.question) as span,
                _timed(self.seconds, "retrieve"),
            ):
                with _asked(span):
                    found = self._found[code] = structure.retrieve(memory, self.question)
                span.gave(items=[{"steps": list(item.steps), "text": item.text} for item in found.items])
                span.has(pieces=len(found.items), truncated=found.truncated)
        return self._found[code]

    def _memory(self, code: str) -> Any:
        with self.trace.span(f"open {self.memories.structures[code].name}", "TOOL"), _timed(self.seconds, "build"):
            return self.memories.open(code, self.trajectory, self.trace)


@contextmanager
def _asked(span: Span) -> Iterator[None]:
    """Say of a span what the work in it asked models for, and the seconds it took."""
    with metered() as meter:
        try:
            yield
        finally:
            cost = meter.cost
            span.has(calls=cost.calls, embedded_texts=cost.embedded_texts, seconds=cost.seconds)
            if cost.calls:
                span.spent(cost.prompt_tokens, cost.completion_tokens)


@contextmanager
def _timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - started
