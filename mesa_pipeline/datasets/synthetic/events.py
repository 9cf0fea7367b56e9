"""What the simulators report beside the log text: the state as it really is, from which gold answers are computed.

Whatever an event names stands in the text of the step it happened at, so each question can say which steps suffice.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """From this step on, ``attribute`` of ``entity`` has ``value``."""

    entity: str
    attribute: str
    value: str


@dataclass(frozen=True, slots=True)
class Relation:
    """The step states that ``head`` stands in ``relation`` to ``tail``."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The action failed for ``reason`` while working on ``entity``; ``identifier`` occurs nowhere else in the log."""

    entity: str
    reason: str
    identifier: str


@dataclass(frozen=True, slots=True)
class Announcement:
    """The step mentions ``cause``, on account of which a later action on ``entity`` is going to be refused."""

    entity: str
    cause: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The action was refused because of the latest announcement about ``entity``; the step itself does not say why."""

    entity: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """The action removed what ``entity`` was refused for."""

    entity: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A remark about ``topic`` went by, in words that its question avoids."""

    topic: str
    answer: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a routine check returned this time; the same action returns something else at other times."""

    value: str


@dataclass(frozen=True, slots=True)
class GoalStarted:
    goal: str


@dataclass(frozen=True, slots=True)
class GoalFinished:
    goal: str


Event = Change | Relation | Failure | Announcement | Refusal | Remedy | Notice | Reading | GoalStarted | GoalFinished


@dataclass(frozen=True, slots=True)
class Turn:
    """One step of a simulation: what the agent did, what came back, and what really happened."""

    action: str
    observation: str
    events: tuple[Event, ...] = ()
