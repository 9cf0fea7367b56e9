"""Recall: what was done and what came back, asked by step, by rare identifier, or in other words."""

from collections import defaultdict
from collections.abc import Iterator

from mesa_pipeline.datasets.synthetic.events import Notice, Reading
from mesa_pipeline.datasets.synthetic.history import At
from mesa_pipeline.datasets.synthetic.questions.design import Draft, Kind, Subject

SHORTEST_RANGE, LONGEST_RANGE = 3, 6
MAX_ACTION_CHARS = 90
STEP_ACTION = (
    "What did {agent} do at step {step}?",
    "Which action was taken at step {step}?",
    "At step {step}, what exactly did {agent} do?",
    "Name the action of step {step}.",
)
STEP_READING = (
    "{agent} used `{action}` more than once. What did it return at step {step}?",
    "What came back when `{action}` was issued at step {step}?",
    "`{action}` turns up several times in the log. What was its result at step {step}?",
)
RANGE_ACTIONS = (
    "List the actions from step {first} to step {last}, in order.",
    "Between steps {first} and {last}, what did {agent} do, one action after the other?",
    "Which actions were taken in steps {first}-{last}?",
)
AFTER_IDENTIFIER = (
    "What did {agent} do right after {identifier} came up?",
    "Which action immediately followed the message with {identifier}?",
    "{identifier} was shown to {agent}. What was the very next move?",
)
BEFORE_IDENTIFIER = (
    "What was the last thing {agent} did before the action that ended in {identifier}?",
    "Which action came directly before the one that raised {identifier}?",
)


def step_action(subject: Subject) -> Iterator[Draft]:
    """The action of one step. Its words occur at other steps too, so only the step number finds it."""
    for step in subject.shuffled(subject.history.steps):
        if len(step.action) <= MAX_ACTION_CHARS:
            text = subject.phrase(STEP_ACTION, step=step.index)
            yield Draft(text, step.action, (step.index,), (step.action,))


def step_reading(subject: Subject) -> Iterator[Draft]:
    """One result of a check that was made several times with different results."""
    readings: dict[str, list[At[Reading]]] = defaultdict(list)
    for reading in subject.history.all(Reading):
        readings[subject.history.steps[reading.step].action].append(reading)
    repeated = [
        (action, reading)
        for action, series in readings.items()
        if len({reading.event.value for reading in series}) > 1
        for reading in series
    ]
    for action, reading in subject.shuffled(repeated):
        text = subject.phrase(STEP_READING, step=reading.step, action=action)
        yield Draft(text, reading.event.value, (reading.step,), (reading.event.value,))


def range_actions(subject: Subject) -> Iterator[Draft]:
    """The actions of a few consecutive steps."""
    history = subject.history
    for step in subject.shuffled(range(len(history) - SHORTEST_RANGE + 1)):
        last = min(step + subject.rng.randint(SHORTEST_RANGE, LONGEST_RANGE) - 1, history.last)
        actions = tuple(taken.action for taken in history.steps[step : last + 1])
        if max(map(len, actions)) <= MAX_ACTION_CHARS:
            text = subject.phrase(RANGE_ACTIONS, first=step, last=last)
            yield Draft(text, "; ".join(actions), tuple(range(step, last + 1)), actions)


def paraphrased_notice(subject: Subject) -> Iterator[Draft]:
    """A remark in passing, asked for in words it does not use."""
    topics = {topic.key: topic for topic in subject.wording.topics}
    for notice in subject.shuffled(subject.history.all(Notice)):
        text = subject.phrase(topics[notice.event.topic].questions)
        yield Draft(text, notice.event.answer, (notice.step,), (notice.event.answer,))


def after_identifier(subject: Subject) -> Iterator[Draft]:
    """The step after a rare identifier: the identifier finds its own step, the answer stands in the next."""
    history = subject.history
    for failure in subject.shuffled(history.failures):
        if failure.step < history.last and len(history.steps[failure.step + 1].action) <= MAX_ACTION_CHARS:
            action = history.steps[failure.step + 1].action
            text = subject.phrase(AFTER_IDENTIFIER, identifier=failure.event.identifier)
            yield Draft(text, action, (failure.step, failure.step + 1), (failure.event.identifier, action))


def before_identifier(subject: Subject) -> Iterator[Draft]:
    """The step before the one that shows a rare identifier."""
    history = subject.history
    for failure in subject.shuffled(history.failures):
        if failure.step > 0 and len(history.steps[failure.step - 1].action) <= MAX_ACTION_CHARS:
            action = history.steps[failure.step - 1].action
            text = subject.phrase(BEFORE_IDENTIFIER, identifier=failure.event.identifier)
            yield Draft(text, action, (failure.step - 1, failure.step), (action, failure.event.identifier))


KINDS = (
    Kind("step_action", "recall", ("T",), step_action),
    Kind("step_reading", "recall", ("T",), step_reading, misled_by_more=True),
    Kind("range_actions", "recall", ("T",), range_actions),
    Kind("paraphrased_notice", "recall", ("V",), paraphrased_notice),
    Kind("after_identifier", "recall", ("R",), after_identifier),
    Kind("before_identifier", "recall", ("R",), before_identifier),
)
