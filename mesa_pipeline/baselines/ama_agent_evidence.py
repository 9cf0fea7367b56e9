"""What AMA-Agent hands to the reader, within its budget (paper, B.1; Zhao et al. 2026)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mesa_pipeline.baselines.ama_agent_turns import AgentMemory
from mesa_pipeline.baselines.texts import head_and_tail
from mesa_pipeline.config import AmaAgentSettings
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.structures.summary import cited_steps
from mesa_pipeline.types import Evidence, EvidenceItem


class Judged(NamedTuple):
    """How judging ended.

    Attributes:
        turns: Positions of the turns found, in the order they were.
        draft: The model's own answer, where the turns sufficed.
        wanted: What a program is to compute, where one is needed.
    """

    turns: list[int]
    draft: str | None = None
    wanted: str | None = None


@dataclass(frozen=True)
class Found:
    """All that was found for a question.

    Attributes:
        judged: The turns, and how judging them ended.
        scores: Likeness of every turn of the trajectory to the question, shape ``(turns,)``.
        output: What a program found, where one did.
    """

    judged: Judged
    scores: np.ndarray
    output: str | None


def composed(code: str, memory: AgentMemory, found: Found, settings: AmaAgentSettings, counter: TokenCounter) -> Evidence:
    """State memory, task, turns in time order, and the program's output, in ``evidence_tokens`` tokens or thereabouts.

    State memory and task have their share at most. Of the turns, those found first come first where there is not room for all.
    """
    steps = memory.trajectory.steps
    share = int(settings.evidence_tokens * settings.state_share)
    state = head_and_tail(memory.state, share, settings.state_head, counter)
    task = head_and_tail(memory.trajectory.task.strip(), share, settings.state_head, counter)
    before = [EvidenceItem(f"State memory:\n{state}", cited_steps(state, steps))] if state else []
    before += [EvidenceItem(f"Task:\n{task}")] if task else []
    after = [EvidenceItem(_result(found.judged.wanted, found.output))] if found.output else []
    room = settings.evidence_tokens - sum(counter.count(item.text) for item in (*before, *after))
    records = sorted(_records(memory, found, room, settings, counter), key=lambda item: item.steps)
    is_whole = len(records) == len(found.judged.turns) and all(item.is_record for item in records)
    return Evidence(code, (*before, *records, *after), truncated=not is_whole, draft=found.judged.draft)


def _records(
    memory: AgentMemory, found: Found, room: int, settings: AmaAgentSettings, counter: TokenCounter
) -> Iterator[EvidenceItem]:
    """Turns in the order they were found, as far as there is room; the middle of the last may be left out."""
    for position in found.judged.turns:
        step = memory.trajectory.steps[position]
        record = serialize_step(step).text
        text = head_and_tail(record, room, settings.state_head, counter)
        if not text:
            return
        yield EvidenceItem(text, (step.index,), float(found.scores[position]), is_record=text == record)
        room -= counter.count(text)


def _result(wanted: str | None, output: str | None) -> str:
    return f"A program searched all steps for: {wanted}\nIt found: {output}"
