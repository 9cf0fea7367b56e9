"""State updating: what holds when, after values were set and overwritten."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from mesa_pipeline.datasets.synthetic.events import Change
from mesa_pipeline.datasets.synthetic.history import At, StateKey
from mesa_pipeline.datasets.synthetic.questions.design import Draft, Kind, Subject

MIN_STEPS_AFTER_CHANGE = 3
FEWEST_VALUES, MOST_VALUES = 3, 7
VALUE_AT_STEP = (
    "What was {state} at step {step}?",
    "As things stood at step {step}, what was {state}?",
    "By step {step}, what had {state} come to be?",
)
FINAL_VALUE = (
    "What was {state} when the log ends?",
    "In the end, what is {state}?",
    "After everything that happened, what is {state} now?",
)
HISTORY = (
    "Which values did {state} go through, in order?",
    "Trace {state} from first report to last.",
    "How did {state} develop over the whole trajectory?",
)
FIRST_VALUE = (
    "What was {state} when it was first reported?",
    "Before any of its later updates, what was {state}?",
)
VALUE_AT_IDENTIFIER = (
    "What was {state} at the moment {identifier} came up?",
    "When {agent} ran into {identifier}, what was {state}?",
)
LAST_CHANGE = (
    "Until step {step}, when did {state} last change, and to what?",
    "Looking only at what happened up to step {step}: what was the latest update of {state}, and at which step?",
)


def value_at_step(subject: Subject) -> Iterator[Draft]:
    """A value set well before the step asked about and overwritten after it; the step itself says nothing of it."""
    history = subject.history
    spans = [
        (key, before, after)
        for key, course in history.changes.items()
        for before, after in pairwise(course)
        if after.step - before.step > MIN_STEPS_AFTER_CHANGE
    ]
    for key, before, after in subject.shuffled(spans):
        step = subject.rng.randrange(before.step + MIN_STEPS_AFTER_CHANGE, after.step)
        if not history.mentions(step, key.entity):
            text = subject.phrase(VALUE_AT_STEP, step=step, state=subject.wording.attribute(*key))
            yield Draft(text, before.event.value, (before.step,), (before.event.value,))


def value_at_identifier(subject: Subject) -> Iterator[Draft]:
    """A value that held when a rare identifier was shown; the step that shows it says nothing of the value."""
    history = subject.history
    courses = sorted(history.changes.items())
    for failure in subject.shuffled(history.failures) if courses else ():
        key, course = subject.rng.choice(courses)
        place = bisect_right([change.step for change in course], failure.step)
        settled = 0 < place < len(course) and course[place - 1].step < failure.step - 1
        if settled and not history.mentions(failure.step, key.entity):
            held = course[place - 1]
            text = subject.phrase(
                VALUE_AT_IDENTIFIER, state=subject.wording.attribute(*key), identifier=failure.event.identifier
            )
            facts = (held.event.value, failure.event.identifier)
            yield Draft(text, held.event.value, (held.step, failure.step), facts)


def first_value(subject: Subject) -> Iterator[Draft]:
    """The value before all updates."""
    for key, course in subject.shuffled(subject.history.changes.items()):
        if len(course) > 1:
            text = subject.phrase(FIRST_VALUE, state=subject.wording.attribute(*key))
            yield Draft(text, course[0].event.value, (course[0].step,), (course[0].event.value,))


def final_value(subject: Subject) -> Iterator[Draft]:
    """The last of several values; all the earlier ones are still in the log."""
    yield from _last_values(subject, min_values=2)


def only_value(subject: Subject) -> Iterator[Draft]:
    """The value an attribute has had since it was first reported: what a short log still supports."""
    yield from _last_values(subject, min_values=1)


def _last_values(subject: Subject, min_values: int) -> Iterator[Draft]:
    for key, course in subject.shuffled(subject.history.changes.items()):
        if len(course) >= min_values:
            text = subject.phrase(FINAL_VALUE, state=subject.wording.attribute(*key))
            yield Draft(text, course[-1].event.value, (course[-1].step,), (course[-1].event.value,))


def value_history(subject: Subject) -> Iterator[Draft]:
    """All values in order; they are spread over more steps than any top-k holds."""
    for key, course in subject.shuffled(subject.history.changes.items()):
        if FEWEST_VALUES <= len(course) <= MOST_VALUES:
            values = tuple(change.event.value for change in course)
            text = subject.phrase(HISTORY, state=subject.wording.attribute(*key))
            yield Draft(text, ", then ".join(values), _steps(course), values)


def last_change(subject: Subject) -> Iterator[Draft]:
    """The latest change within a prefix of the log, with later ones behind it."""
    spans: list[tuple[StateKey, At[Change], At[Change]]] = [
        (key, before, after) for key, course in subject.history.changes.items() for before, after in pairwise(course[1:])
    ]
    for key, before, after in subject.shuffled(spans):
        step = subject.rng.randrange(before.step, after.step)
        answer = f"at step {before.step}, to {before.event.value}"
        text = subject.phrase(LAST_CHANGE, step=step, state=subject.wording.attribute(*key))
        yield Draft(text, answer, (before.step,), (before.event.value,))


def _steps(course: list[At[Change]]) -> tuple[int, ...]:
    return tuple(change.step for change in course)


KINDS = (
    Kind("value_at_step", "state-updating", ("S", "T"), value_at_step, misled_by_more=True),
    Kind("value_at_identifier", "state-updating", ("S", "R"), value_at_identifier, misled_by_more=True),
    Kind("first_value", "state-updating", ("S",), first_value, misled_by_more=True),
    Kind("final_value", "state-updating", ("S",), final_value, misled_by_more=True),
    Kind("value_history", "state-updating", ("S",), value_history),
    Kind("last_change", "state-updating", ("T",), last_change, misled_by_more=True),
)
FALLBACK_KINDS = (Kind("only_value", "state-updating", ("V",), only_value),)
