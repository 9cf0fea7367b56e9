"""What Hindsight is given of an episode, document by document (paper, B.1)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from mesa_pipeline.baselines.passages import BREAK, Passage, packed
from mesa_pipeline.config import HindsightSettings
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step, Trajectory

TIME = re.compile(r"\[([^\]\n]{1,80})\]")
"""How a turn that says when it was said begins."""


@dataclass(frozen=True)
class Documents:
    """An episode in documents, in time order, and whether the middle of its history is missing."""

    passages: tuple[Passage, ...]
    truncated: bool


@dataclass(frozen=True)
class CutHistory:
    """Steps that are left, and whether anything is missing."""

    steps: tuple[Step, ...]
    truncated: bool


def documents_of(trajectory: Trajectory, settings: HindsightSettings) -> Documents:
    """Whole steps packed into documents; of a conversation, a document for each session."""
    if trajectory.kind == "dialogue":
        return Documents(sessions(trajectory.steps), False)
    history = cut_middle(trajectory.steps, settings.history_chars)
    return Documents(packed(history.steps, settings.document_chars), history.truncated)


def sessions(steps: Sequence[Step]) -> tuple[Passage, ...]:
    """Consecutive turns of the same time together."""
    return tuple(_together(list(group)) for _, group in groupby(steps, _time))


def cut_middle(steps: Sequence[Step], max_chars: int) -> CutHistory:
    """The beginning and the end of a history that is too long, half of the room each; a step that fits in part is cut."""
    sizes = [len(serialize_step(step).text) for step in steps]
    if sum(sizes) <= max_chars:
        return CutHistory(tuple(steps), False)
    head, room = 0, max_chars // 2
    while sizes[head] <= room:
        room -= sizes[head]
        head += 1
    first = (*steps[:head], *_beginning(steps[head], room))
    tail, room = len(steps), max_chars - max_chars // 2
    while sizes[tail - 1] <= room:
        tail -= 1
        room -= sizes[tail]
    return CutHistory((*first, *_end(steps[tail - 1], room), *steps[tail:]), True)


def _together(steps: Sequence[Step]) -> Passage:
    return Passage(BREAK.join(serialize_step(step).text for step in steps), tuple(step.index for step in steps))


def _beginning(step: Step, max_chars: int) -> tuple[Step, ...]:
    """The step as far as it fits, if anything of it does."""
    room = max_chars - _frame(step)
    action = step.action[: max(room, 0)]
    return (Step(step.index, action, step.observation[: room - len(action)]),) if room > 0 else ()


def _end(step: Step, max_chars: int) -> tuple[Step, ...]:
    """The end of a step as far as it fits, if anything of it does."""
    room = max_chars - _frame(step)
    if room <= 0:
        return ()
    observation = step.observation[-room:]
    missing = max(len(step.action) - (room - len(observation)), 0)
    return (Step(step.index, step.action[missing:], observation),)


def _frame(step: Step) -> int:
    """Characters of a record that are neither action nor observation."""
    return len(serialize_step(Step(step.index, "a", "o")).text) - 2


def _time(step: Step) -> str:
    found = TIME.match(step.observation)
    return found[1] if found else ""
