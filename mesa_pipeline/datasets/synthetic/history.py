"""A finished simulation, indexed for the questions. Everything here takes time linear in the number of steps."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from mesa_pipeline.datasets.synthetic.events import Change, Event, Failure, GoalFinished, GoalStarted, Relation, Turn
from mesa_pipeline.types import Step

E = TypeVar("E")
MIN_LOOP_STEPS = 4


class At(NamedTuple, Generic[E]):
    """An event and the step it happened at."""

    step: int
    event: E


class StateKey(NamedTuple):
    """One tracked attribute of one entity."""

    entity: str
    attribute: str


class Loop(NamedTuple):
    """Steps ``first..last`` alternate between two actions."""

    first: int
    last: int


@dataclass(frozen=True)
class History:
    """Steps with the events that happened at each."""

    steps: tuple[Step, ...]
    events: tuple[tuple[Event, ...], ...]

    @classmethod
    def of(cls, turns: Iterable[Turn]) -> "History":
        played = tuple(turns)
        steps = tuple(Step(index, turn.action, turn.observation) for index, turn in enumerate(played))
        return cls(steps, tuple(turn.events for turn in played))

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def last(self) -> int:
        return len(self.steps) - 1

    def text(self, step: int) -> str:
        """Action and observation of a step."""
        return f"{self.steps[step].action}\n{self.steps[step].observation}"

    def mentions(self, step: int, words: str) -> bool:
        return words.casefold() in self.text(step).casefold()

    def all(self, kind: type[E]) -> Iterator[At[E]]:
        """Every event of a kind, in time order."""
        for step, events in enumerate(self.events):
            for event in events:
                if isinstance(event, kind):
                    yield At(step, event)

    @cached_property
    def changes(self) -> dict[StateKey, list[At[Change]]]:
        """The course of every tracked attribute; repeated reports of the value it already has are left out."""
        courses: dict[StateKey, list[At[Change]]] = defaultdict(list)
        for change in self.all(Change):
            course = courses[StateKey(change.event.entity, change.event.attribute)]
            if course and course[-1].step == change.step:
                course.pop()
            if not course or course[-1].event.value != change.event.value:
                course.append(change)
        return dict(courses)

    @cached_property
    def failures(self) -> list[At[Failure]]:
        return list(self.all(Failure))

    @cached_property
    def finished_goals(self) -> list[At[GoalFinished]]:
        return list(self.all(GoalFinished))

    @cached_property
    def open_goal(self) -> At[GoalStarted] | None:
        """The goal begun last, unless it was finished."""
        started = list(self.all(GoalStarted))
        finished = {goal.event.goal for goal in self.finished_goals}
        return started[-1] if started and started[-1].event.goal not in finished else None

    @cached_property
    def statements(self) -> dict[StateKey, list[int]]:
        """Steps at which each relation of each head is stated, ascending."""
        steps: dict[StateKey, list[int]] = defaultdict(list)
        for stated in self.all(Relation):
            steps[StateKey(stated.event.head, stated.event.relation)].append(stated.step)
        return dict(steps)

    @cached_property
    def facts(self) -> dict[StateKey, At[Relation]]:
        """Relations by head and name: the first statement of each, where no other tail was ever stated."""
        first: dict[StateKey, At[Relation]] = {}
        disputed: set[StateKey] = set()
        for stated in self.all(Relation):
            key = StateKey(stated.event.head, stated.event.relation)
            if first.setdefault(key, stated).event.tail != stated.event.tail:
                disputed.add(key)
        return {key: stated for key, stated in first.items() if key not in disputed}

    @cached_property
    def loops(self) -> list[Loop]:
        """Longest stretches of at least four steps that alternate between two actions."""
        actions = [step.action for step in self.steps]
        found: list[Loop] = []
        first = 0
        for step in range(2, len(actions) + 1):
            alternates = step < len(actions) and actions[step] == actions[step - 2] != actions[step - 1]
            if not alternates:
                if step - first >= MIN_LOOP_STEPS:
                    found.append(Loop(first, step - 1))
                first = step - 1
        return found
