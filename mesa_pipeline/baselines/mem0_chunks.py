"""What Mem0 is given of an episode, chunk by chunk (paper, B.1)."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from mesa_pipeline.baselines.texts import pieces
from mesa_pipeline.config import Mem0Settings
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step, Trajectory

EPISODE = "episode"
"""Name of the store of an episode that is no conversation."""
MAX_NAME_CHARS = 40


class Said(NamedTuple):
    """One message: of whom the store is says ``user``, everybody else ``assistant``."""

    step: int
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Chunk:
    """Messages that are added together, to one store."""

    store: str
    messages: tuple[Said, ...]

    @property
    def steps(self) -> tuple[int, ...]:
        """Indices of the steps that any of it is of."""
        return tuple(dict.fromkeys(message.step for message in self.messages))


def cut_chunks(trajectory: Trajectory, settings: Mem0Settings) -> list[Chunk]:
    """Steps in order, so many or so many characters at a time; a longer step in pieces.

    Of a conversation, each speaker's store gets every pair of turns, and learns who of the two it is of.
    """
    dialogue = trajectory.kind == "dialogue"
    most = settings.dialogue_turns if dialogue else settings.chunk_steps
    groups: list[list[tuple[Step, str]]] = []
    size = 0
    for step in trajectory.steps:
        for text in pieces(serialize_step(step).text, settings.chunk_chars):
            if not groups or len(groups[-1]) >= most or size + len(text) > settings.chunk_chars:
                groups.append([])
                size = 0
            groups[-1].append((step, text))
            size += len(text)
    stores = speakers(trajectory) if dialogue else (EPISODE,)
    return [Chunk(store, tuple(_said(store, step, text) for step, text in group)) for store in stores for group in groups]


def speakers(trajectory: Trajectory) -> tuple[str, ...]:
    """Who speaks in a conversation, in order of appearance; one store for all where nobody is named."""
    names = map(_speaker, trajectory.steps)
    return tuple(dict.fromkeys(name for name in names if 0 < len(name) <= MAX_NAME_CHARS)) or (EPISODE,)


def _said(store: str, step: Step, text: str) -> Said:
    return Said(step.index, "user" if store in (EPISODE, _speaker(step)) else "assistant", text)


def _speaker(step: Step) -> str:
    """Who says a turn such as ``[1 May] Ann: hello``, or ``Ann: hello``."""
    said = step.observation
    if said.startswith("["):
        said = said.partition("] ")[2]
    return said.partition(":")[0].strip() if ":" in said else ""
