"""Abstraction: what a stretch of the log, or all of it, amounts to."""

from collections import Counter
from collections.abc import Iterator

from mesa_pipeline.datasets.synthetic.events import GoalStarted
from mesa_pipeline.datasets.synthetic.questions.design import Draft, Kind, Subject, enumerate_words, times

GOALS_NAMED = 5
MIN_GOAL_STEPS = 8
SHORTEST_SPAN, LONGEST_SPAN = 5, 12
MOST_CHANGES = 5
MOST_ACTIONS = 6
FAILURE_TALLY = (
    "Which kinds of errors did {agent} run into over the whole log, and how often each?",
    "Count the failures {agent} met, by cause.",
    "Overall, what went wrong and how many times?",
)
GOALS_IN_ORDER = (
    "Which {which}sub-goals did {agent} complete, in order?",
    "Name the {which}objectives {agent} finished, from first to last.",
)
OUTCOME = (
    "How does the trajectory end: how many sub-goals were finished, and what was still open?",
    "What is the overall outcome for {agent}: goals done and goal left unfinished?",
)
GOAL_AT_STEP = (
    "Which sub-goal was {agent} pursuing at step {step}?",
    "What was the work around step {step} in aid of?",
)
LOOP = (
    "Between steps {first} and {last} {agent} goes round in circles. Which actions keep alternating?",
    "What pattern do the actions in steps {first}-{last} form?",
)
FREQUENCY = (
    "Until step {step}, which actions were repeated, and how often?",
    "Up to step {step}, what did {agent} do more than once, and how many times?",
)
KEY_CHANGES = (
    "Summarise what became known or changed between steps {first} and {last}.",
    "Which states were reported for the first time or updated from step {first} to step {last}?",
)


def failure_tally(subject: Subject) -> Iterator[Draft]:
    """How often each kind of failure happened in all."""
    counts = Counter(failure.event.reason for failure in subject.history.failures)
    if counts:
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        answer = ", ".join(f"{reason} {times(count)}" for reason, count in ranked)
        steps = tuple(sorted({failure.step for failure in subject.history.failures}))
        yield Draft(subject.phrase(FAILURE_TALLY), answer, steps, tuple(counts))


def goals_in_order(subject: Subject) -> Iterator[Draft]:
    """Sub-goals in the order they were finished; of a long log the first or the last few."""
    goals = subject.history.finished_goals
    if len(goals) < 2:
        return
    selections = [(f"first {GOALS_NAMED} ", goals[:GOALS_NAMED]), (f"last {GOALS_NAMED} ", goals[-GOALS_NAMED:])]
    for which, chosen in subject.shuffled(selections) if len(goals) > GOALS_NAMED else [("", goals)]:
        names = tuple(goal.event.goal for goal in chosen)
        steps = tuple(goal.step for goal in chosen)
        yield Draft(subject.phrase(GOALS_IN_ORDER, which=which), ", then ".join(names), steps, names)


def outcome(subject: Subject) -> Iterator[Draft]:
    """How many goals were finished and which one was open at the end."""
    done, left = subject.history.finished_goals, subject.history.open_goal
    if done and left:
        answer = f"{len(done)} finished, still open: {left.event.goal}"
        steps = tuple(sorted({*(goal.step for goal in done), left.step}))
        yield Draft(subject.phrase(OUTCOME), answer, steps, (left.event.goal,))


def goal_at_step(subject: Subject) -> Iterator[Draft]:
    """The goal in force at a step that does not name it; it was set well before."""
    history = subject.history
    started = list(history.all(GoalStarted))
    ends = [*(goal.step for goal in started[1:]), len(history)]
    spans = [(goal, end) for goal, end in zip(started, ends, strict=True) if end - goal.step > MIN_GOAL_STEPS]
    for goal, end in subject.shuffled(spans):
        step = subject.rng.randrange(goal.step + MIN_GOAL_STEPS // 2, end - 1)
        if not history.mentions(step, goal.event.goal):
            text = subject.phrase(GOAL_AT_STEP, step=step)
            yield Draft(text, goal.event.goal, (goal.step,), (goal.event.goal,))


def loop(subject: Subject) -> Iterator[Draft]:
    """The two actions a loop alternates between."""
    steps = subject.history.steps
    for found in subject.shuffled(subject.history.loops):
        actions = (steps[found.first].action, steps[found.first + 1].action)
        text = subject.phrase(LOOP, first=found.first, last=found.last)
        answer = f"alternating between {actions[0]} and {actions[1]}"
        yield Draft(text, answer, tuple(range(found.first, found.last + 1)), actions)


def action_frequency(subject: Subject) -> Iterator[Draft]:
    """The actions done most often in a prefix of the log."""
    history = subject.history
    counts: Counter[str] = Counter()
    limits = set(subject.rng.sample(range(4, len(history)), min(8, len(history) - 4)))
    for step in history.steps[: max(limits) + 1]:
        counts[step.action] += 1
        repeated = sorted((-count, action) for action, count in counts.items() if count > 1) if step.index in limits else []
        if 0 < len(repeated) <= MOST_ACTIONS:
            answer = ", ".join(f"{action} ({-count} times)" for count, action in repeated)
            actions = {action for _, action in repeated}
            steps = tuple(taken.index for taken in history.steps[: step.index + 1] if taken.action in actions)
            yield Draft(subject.phrase(FREQUENCY, step=step.index), answer, steps, tuple(sorted(actions)))


def key_changes(subject: Subject) -> Iterator[Draft]:
    """The first reports and changes within a stretch of steps."""
    history = subject.history
    changes = sorted(
        (
            change.step,
            f"{subject.wording.attribute(*key)} {'became' if place else 'was'} {change.event.value}",
            change.event.value,
        )
        for key, course in history.changes.items()
        for place, change in enumerate(course)
    )
    for position in subject.shuffled(range(len(changes))):
        first = changes[position][0]
        last = min(first + subject.rng.randint(SHORTEST_SPAN, LONGEST_SPAN), history.last)
        found = [change for change in changes[position : position + MOST_CHANGES + 1] if change[0] <= last]
        starts_here = position == 0 or changes[position - 1][0] < first
        if starts_here and len(found) <= MOST_CHANGES:
            answer = enumerate_words([update for _, update, _ in found])
            steps = tuple(sorted({step for step, _, _ in found}))
            text = subject.phrase(KEY_CHANGES, first=first, last=last)
            yield Draft(text, answer, steps, tuple(value for _, _, value in found))


KINDS = (
    Kind("failure_tally", "abstraction", ("S",), failure_tally),
    Kind("goals_in_order", "abstraction", ("S",), goals_in_order),
    Kind("outcome", "abstraction", ("S",), outcome),
    Kind("goal_at_step", "abstraction", ("S",), goal_at_step, misled_by_more=True),
    Kind("loop", "abstraction", ("T",), loop),
    Kind("action_frequency", "abstraction", ("T",), action_frequency),
    Kind("key_changes", "abstraction", ("T",), key_changes),
)
