"""What the simulated worlds share: the making of turns, and remarks that go by while the agent is busy with something else."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from mesa_pipeline.datasets.synthetic.events import Announcement, Event, Notice, Turn
from mesa_pipeline.datasets.synthetic.names import unique_identifiers
from mesa_pipeline.datasets.synthetic.wording import Topic

T = TypeVar("T")
VERBOSITIES = (0, 2, 4, 8, 12)  # most lines of chatter in one observation; drawn once for an episode


@dataclass(frozen=True, slots=True)
class Remark:
    """A line that joins the observation of whichever step comes next, with what it reports."""

    text: str
    events: tuple[Event, ...]


class World(ABC):
    """State of one simulated environment together with the agent that acts in it.

    ``play`` never ends by itself: the caller takes as many turns as the episode is long. State stays bounded, and what is
    finished is replaced by something new, so that a long episode is no repetition of a short one.
    """

    task: str

    def __init__(self, rng: Random, identifier_prefix: str, topics: Sequence[Topic]) -> None:
        self.rng = rng
        self._identifiers = unique_identifiers(rng, identifier_prefix)
        self._topics = rng.sample(list(topics), len(topics))
        self._remarks: list[Remark] = []
        self._verbosity = rng.choice(VERBOSITIES)

    @abstractmethod
    def play(self) -> Iterator[Turn]:
        """Act for ever, one turn at a time."""

    @abstractmethod
    def chatter(self) -> str:
        """A line of the noise such logs are full of; it says nothing about anything that is asked."""

    def turn(self, action: str, observation: str, *events: Event) -> Turn:
        """A turn, with chatter and the remarks that were waiting added to its observation."""
        chatter = (self.chatter() for _ in range(self.rng.randint(0, self._verbosity)))
        lines = [observation, *chatter, *(remark.text for remark in self._remarks)]
        reported = (*events, *(event for remark in self._remarks for event in remark.events))
        self._remarks.clear()
        return Turn(action, "\n".join(line for line in lines if line), reported)

    def interject(self, text: str, *events: Event) -> None:
        """Let a line go by with the next turn."""
        self._remarks.append(Remark(text, events))

    def announce(self, text: str, entity: str, causes: Sequence[str], chance: float) -> str:
        """With some chance let go by why work on ``entity`` is going to be refused.

        Args:
            text: Line with ``{entity}`` and ``{cause}``.
            entity: What will be refused.
            causes: Reasons of which one is picked.
            chance: How likely it is that there is one.

        Returns:
            The reason; empty where there is none.
        """
        if not self.chance(chance):
            return ""
        cause = self.pick(causes)
        self.interject(text.format(entity=entity, cause=cause), Announcement(entity, cause))
        return cause

    def gossip(self, chance: float) -> None:
        """With some chance let one of the remaining topics go by; each is mentioned once in an episode."""
        if self._topics and self.chance(chance):
            topic = self._topics.pop()
            answer = self.pick(topic.answers)
            self.interject(topic.statement.format(answer=answer), Notice(topic.key, answer))

    def identifier(self) -> str:
        return next(self._identifiers)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, choices: Sequence[T]) -> T:
        return self.rng.choice(choices)
