"""AMA-Agent: turns retrieved, judged, added to on request or by code that a model writes (paper, B.1; Zhao et al. 2026)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from mesa_pipeline.baselines import ama_agent_code
from mesa_pipeline.baselines.ama_agent_code import CodeSearch
from mesa_pipeline.baselines.ama_agent_evidence import Found, Judged, composed
from mesa_pipeline.baselines.ama_agent_turns import AgentMemory, chunked, first_turns
from mesa_pipeline.baselines.base import Baseline, BaselineContext, Provenance, RunProgram, stored_vectors
from mesa_pipeline.baselines.passages import BREAK
from mesa_pipeline.baselines.texts import head_and_tail
from mesa_pipeline.config import AmaAgentSettings
from mesa_pipeline.llm import Embedder, Message, OpenChat, TokenCounter, vectors_for
from mesa_pipeline.llm.metering import note
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.structured import without_reasoning
from mesa_pipeline.stores.embedded import RANKING_VERSION
from mesa_pipeline.structures import sufficiency
from mesa_pipeline.structures.base import MemoryStructure, StoredMemory
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.structures.sufficiency import first_steps, read_whole_verdict
from mesa_pipeline.structures.summary import SummaryState
from mesa_pipeline.types import Evidence, Step, Trajectory

VERSION = 1
JUDGE = Prompt.load(Path(__file__).parent / "prompts" / "ama_agent_judge.md")
ANSWER = re.compile(r"^[ \t*_#>`]*answer[ \t*_`]*:[ \t*_]*", re.IGNORECASE | re.MULTILINE)
BUILD_SETTINGS = {"chunk_chars", "state_tokens", "state_head"}


@dataclass(frozen=True)
class Models:
    """What AMA-Agent asks: a language model, an embedder, a token counter, and who runs programs."""

    chat: OpenChat
    embedder: Callable[[], Embedder]
    counter: TokenCounter
    run_program: RunProgram


class AmaAgent(Baseline[AgentMemory]):
    """State memory, the best turns and those named, and what a judge asks for beyond them.

    Args:
        settings: Turns, rounds, tries and evidence.
        summary: The structure whose summary is the state memory.
        models: What it asks.
    """

    code: ClassVar[str] = "ama_agent"
    name: ClassVar[str] = "ama_agent"
    title: ClassVar[str] = "AMA-Agent"
    shares: ClassVar[tuple[str, ...]] = ("S",)
    query_model = "loop"
    needs_embedder = True
    needs_model = True
    provenance = Provenance(
        source="Zhao et al. 2026",
        package=None,
        from_paper=(
            "a state memory of 1,000 tokens, compressed in sessions of 8,192 by the backbone (structures.summary.builder=llm); "
            "no causal graph",
            "turns embedded in chunks of 2,048 characters, the five turns most alike to a question, and those it names",
            "the backbone judges whether they suffice, and may ask for adjacent or ranged turns or for a search by code",
            "temperature 0; a dialogue's turns are steps like any others",
        ),
        choices=(
            "the state memory is structure S, shared, turn-aligned and in sessions of characters, cut to its beginning and end",
            "with structures.summary.builder=extractive, the setting for work without a model, it is quoted from the steps by "
            "rules of ours, and the backbone is asked for verdicts and programs alone",
            "three verdicts and three programs, with no clock; a verdict that cannot be read ends the search",
            "a verdict is a line that begins with one; of a long range of turns a bounded number is read",
            "programs run in the sandbox of policies, and what one returns is evidence",
            "evidence is measured in tokens; the judge's answer is kept beside it",
        ),
    )

    def __init__(self, settings: AmaAgentSettings, summary: MemoryStructure[SummaryState], models: Models) -> None:
        self._settings = settings
        self._summary = summary
        self._models = models

    @classmethod
    def create(cls, context: BaselineContext) -> Self:
        models = Models(context.chat, context.embedder, context.counter, context.run_program)
        return cls(context.settings.baselines.ama_agent, context.structures["S"], models)

    def build_identity(self) -> Mapping[str, Any]:
        return {
            "version": VERSION,
            "summary": dict(self._summary.build_identity()),
            "embedder": self._models.embedder().name,
            "counter": self._models.counter.name,
            "settings": self._settings.model_dump(include=BUILD_SETTINGS),
        }

    def retrieve_identity(self) -> Mapping[str, Any]:
        limits = (self._settings.max_tokens, self._settings.code_tokens)
        prompts = (JUDGE, ama_agent_code.WRITE, ama_agent_code.AGAIN)
        return {
            "version": [VERSION, sufficiency.PARSE_VERSION, ama_agent_code.PARSE_VERSION, RANKING_VERSION],
            "models": [self._models.chat("recall", None, limit).name for limit in limits],
            "prompts": [prompt.fingerprint for prompt in prompts],
            "counter": self._models.counter.name,
            "settings": self._settings.model_dump(exclude=BUILD_SETTINGS - {"state_head"}),
        }

    def build(self, trajectory: Trajectory) -> AgentMemory:
        return self.build_with(trajectory, {"S": self._summary.build(trajectory)})

    def build_with(self, trajectory: Trajectory, shared: Mapping[str, Any]) -> AgentMemory:
        summary: SummaryState = shared["S"]
        settings, embedder = self._settings, self._models.embedder()
        whole = BREAK.join(segment.text for segment in summary.segments)
        state = head_and_tail(whole, settings.state_tokens, settings.state_head, self._models.counter)
        chunks = chunked(trajectory.steps, settings.chunk_chars)
        texts = [BREAK.join(serialize_step(trajectory.steps[position]).text for position in chunk) for chunk in chunks]
        return AgentMemory(trajectory, state, embedder.name, chunks, vectors_for(texts, embedder))

    def retrieve(self, memory: AgentMemory, question: str) -> Evidence:
        """The state, the task, the turns found in time order, and what a program found.

        Raises:
            ModelError: The model gave no reply.
        """
        if not memory.trajectory.steps:
            return Evidence(self.code)
        settings = self._settings
        scores = memory.scores(self._models.embedder().embed([question])[0])
        judged = self._judge(memory, question, first_turns(memory, question, scores, settings))
        output = None
        if judged.wanted is not None:
            model = self._models.chat("recall", None, settings.code_tokens)
            search = CodeSearch(settings, model, self._models.run_program)
            output = search.find(question, judged.wanted, memory.trajectory)
        return composed(self.code, memory, Found(judged, scores, output), settings, self._models.counter)

    def encode(self, memory: AgentMemory) -> StoredMemory:
        trajectory = memory.trajectory
        payload = {
            "id": trajectory.id,
            "task": trajectory.task,
            "kind": trajectory.kind,
            "steps": [[step.index, step.action, step.observation] for step in trajectory.steps],
            "state": memory.state,
            "embedder": memory.embedder,
            "chunks": [list(chunk) for chunk in memory.chunks],
        }
        return StoredMemory(payload, {"vectors": memory.vectors})

    def decode(self, stored: StoredMemory) -> AgentMemory:
        payload = stored.payload
        steps = tuple(Step(*step) for step in payload["steps"])
        trajectory = Trajectory(payload["id"], payload["task"], steps, payload["kind"])
        chunks = tuple(map(tuple, payload["chunks"]))
        vectors = stored_vectors(stored, self._models.embedder())
        return AgentMemory(trajectory, payload["state"], payload["embedder"], chunks, vectors)

    def _judge(self, memory: AgentMemory, question: str, first: list[int]) -> Judged:
        """Ask whether the turns suffice, and add those asked for, until they do or there is nothing more to add."""
        settings, found = self._settings, list(first)
        model = self._models.chat("recall", None, settings.max_tokens)
        for _ in range(settings.rounds):
            reply = model.complete([Message("user", self._request(memory, question, found))]).text
            verdict = read_whole_verdict(reply)
            note("verdicts")
            if verdict is None:
                note("verdicts not understood")
                return Judged(found)
            if verdict.kind == "sufficient":
                note("found sufficient")
                return Judged(found, draft=read_answer(reply))
            if verdict.kind == "code":
                note("searches by code")
                return Judged(found, wanted=verdict.said[: settings.feedback_chars] or question)
            wanted = memory.locate(first_steps(verdict.steps, memory.known, settings.max_requested))
            new = [position for position in wanted if position not in found][: settings.max_turns - len(found)]
            if not new:
                note("nothing new asked for")
                return Judged(found)
            found += new
        note("verdicts used up")
        return Judged(found)

    def _request(self, memory: AgentMemory, question: str, found: Sequence[int]) -> str:
        steps = memory.trajectory.steps
        shown = BREAK.join(serialize_step(steps[position], self._settings.shown_chars).text for position in sorted(found))
        limits = {"first": memory.known[0], "last": memory.known[-1], "max_requested": self._settings.max_requested}
        return JUDGE.fill(steps=shown, question=question, **limits)


def read_answer(reply: str) -> str | None:
    """What follows the last mark ``ANSWER:`` in a reply; ``None`` where nothing does."""
    parts = ANSWER.split(without_reasoning(reply))
    return (parts[-1].strip() or None) if len(parts) > 1 else None
