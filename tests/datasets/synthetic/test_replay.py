"""Gold answers recomputed from the log text alone, by a second, separately written interpreter for each environment.

The interpreters know the wording of the logs and nothing of the simulators: they read actions and observations, keep the states
in a dictionary, and answer the same questions.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pytest

from mesa_pipeline.config import SyntheticSettings
from mesa_pipeline.datasets.synthetic import design_episode
from mesa_pipeline.types import Step

State = tuple[str, str]
Course = list[tuple[int, str]]
Reader = Callable[[str, str], Iterator[State]]
NAME = r"([\w-]+(?: [\w-]+)*?)"


def read_software(action: str, text: str) -> Iterator[State]:
    for name, value in re.findall(r"(?:setting involved: |\(sets )(\w+) = (\d+)", text):
        yield f"the setting {name}", value
    if edit := re.fullmatch(r"edit \S+ set (\w+) = (\d+)", action):
        yield f"the setting {edit[1]}", edit[2]
    if run := re.fullmatch(r"pytest tests/(\w+)/test_(\w+)\.py", action):
        result = re.search(r"== ((?:\d+ failed, )?\d+ passed)", text)
        assert result
        yield f"the test result of src/{run[1]}/{run[2]}.py", result[1]


def read_game(action: str, text: str) -> Iterator[State]:
    if action == "look":
        room = text.partition(".")[0]
        for thing in re.findall(r"^On the floor lies the (.+)\.$", text, re.M):
            yield f"the resting place of the {thing}", room
    if moved := re.search(r"^You walk \w+ into ([^.]+)\.|and stand in ([^.]+)\.", text):
        yield "the whereabouts of the explorer", moved[1] or moved[2]
    if mural := re.search(r"mural says that the (.+?) is kept in ([^.]+)\.", text):
        yield f"the resting place of the {mural[1]}", mural[2]
    if locked := re.search(r"^The (.+ door\d*) \(\w+\) is locked", text):
        yield f"the state of the {locked[1]}", "locked"
    if clicked := re.search(r"Click\. The (.+) is unlocked", text):
        yield f"the state of the {clicked[1]}", "unlocked"
    if action.startswith("take the ") and "now in your pack" in text:
        yield f"the resting place of the {action.removeprefix('take the ')}", "in your pack"
    if dropped := re.search(r"Dropped: the (.+) now lies in ([^.]+)\.", text):
        yield f"the resting place of the {dropped[1]}", dropped[2]
    if placed := re.fullmatch(r"place the (.+) on the altar", action):
        yield f"the resting place of the {placed[1]}", "the altar"


def read_web(action: str, text: str) -> Iterator[State]:
    for name, price in re.findall(rf"link '{NAME}' price (\S+ EUR)", text):
        yield f"the price of the {name}", price
    if page := re.search(rf"heading '{NAME}'\n.*StaticText '(\S+ EUR), (\d+ in stock)'", text):
        yield f"the price of the {page[1]}", page[2]
        yield f"the stock level of the {page[1]}", page[3]
    if new := re.search(rf"heading 'New: {NAME}'\n.*StaticText '(\S+ EUR)'", text):
        yield f"the price of the {new[1]}", new[2]
    if (paid := re.fullmatch(r"click \[(?:pay|request refund)\] for (.+)", action)) and "Thank you" in text:
        stock = re.search(r"'(\d+ in stock)'", text)
        assert stock
        yield f"the stock level of the {paid[1]}", stock[1]
    if tracked := re.search(r"StaticText '(#\S+): ([\w ]+)'", text):
        yield f"the delivery status of parcel {tracked[1]}", tracked[2]
    for name, price in re.findall(rf"^banner: {NAME} now (\S+ EUR)$", text, re.M):
        yield f"the price of the {name}", price


def read_database(action: str, text: str) -> Iterator[State]:
    for name, rows in re.findall(r"^ public \| (\S+) +\| (\d+ rows)$", text, re.M):
        yield f"the size of {name}", rows
    for name, rows in re.findall(r"^(\S+) (?:now )?holds (\d+ rows)$", text, re.M):
        yield f"the size of {name}", rows
    for name in re.findall(r"^NOTICE:  (\S+) dropped$", text, re.M):
        yield f"the size of {name}", "dropped"
    for column, kind in re.findall(r"^(\w+\.\w+) is now (.+)$", text, re.M):
        yield f"the column type of {column}", kind


def read_operations(action: str, text: str) -> Iterator[State]:
    if action == "fleet list":
        for name, release, size in re.findall(r"^(\S+) +(v\S+) +(\d+ replicas)$", text, re.M):
            yield f"the release of {name}", release
            yield f"the size of {name}", size
    for name, release in re.findall(r"^(\S+) now serves (\S+)$", text, re.M):
        yield f"the release of {name}", release
    if scaled := re.fullmatch(r"scale (\S+) (\d+)", action):
        yield f"the size of {scaled[1]}", f"{scaled[2]} replicas"
    for name, size in re.findall(r"^\[autoscaler\] (\S+) set to (\d+ replicas)$", text, re.M):
        yield f"the size of {name}", size
    for name in re.findall(r"^retired (\S+)$", text, re.M):
        yield f"the release of {name}", "retired"
        yield f"the size of {name}", "retired"
    for name, release, size in re.findall(r"^registered (\S+) at (\S+) with (\d+ replicas)$", text, re.M):
        yield f"the release of {name}", release
        yield f"the size of {name}", size


def read_embodied(action: str, text: str) -> Iterator[State]:
    patterns = (
        r"The ([\w ]+?) is in (\w+ \d+)\.",
        r"You put the ([\w ]+?) into (\w+ \d+)\.",
        r"moves the ([\w ]+?) to (\w+ \d+)\.",
        r"A parcel: the ([\w ]+?), now on (\w+ \d+),",
        r"The ([\w ]+?) is (given away)\.",
    )
    if arrival := re.search(r"^You arrive at (\w+ \d+)\. On it you see (.*)\.$", text, re.M):
        for thing in re.findall(r"a ([\w ]+)", arrival[2]):
            yield f"the location of the {thing}", arrival[1]
    if taken := re.search(r"^You pick up the ([\w ]+?) from", text):
        yield f"the location of the {taken[1]}", "in your gripper"
    for pattern in patterns:
        for thing, place in re.findall(pattern, text):
            yield f"the location of the {thing}", place
    if treated := re.search(r"^You \w+ the ([\w ]+?) using the \w+\. It is (\w+) now\.", text):
        yield f"the condition of the {treated[1]}", treated[2]


READERS: dict[str, Reader] = {
    "software": read_software,
    "game": read_game,
    "web": read_web,
    "database": read_database,
    "operations": read_operations,
    "embodied": read_embodied,
}
FAILURES = {
    "software": r"(\w+Error) \[TRACE-",
    "game": r"(bare hands slipped|shoulder bounced off|pick snapped|solid wall)[^.]*\. A glyph",
    "web": r"alert '([^']+)'\n.*reference TX-",
    "database": r"^ERROR:  (.+)\nLINE",
    "operations": r"aborted: (.+)$",
    "embodied": r"Nothing happens: (.+)\. Logged",
}
GOALS = {
    "software": r"^closed: (.+)$",
    "game": r"Done: (.+)\.$",
    "web": r"heading 'done: (.+)'",
    "database": r"^CLOSED  (.+)$",
    "operations": r"closed: (.+)$",
    "embodied": r"crosses out: (.+)\.$",
}

GOAL_ACTIONS = {
    "software": "open next ticket",
    "game": "climb the stairs",
    "web": "click [next on list]",
    "database": "worksheet next",
    "operations": "next assignment",
    "embodied": "read the board",
}
GOAL_STARTS = {
    "software": r"title: (.+)",
    "game": r"Your task here: (.+)\.",
    "web": r"StaticText '((?:order|return) .+? as #\S+)'",
    "database": r"TODO  (.+)",
    "operations": r"assignment: (.+)",
    "embodied": r"The board says: (.+)\.",
}

ANNOUNCEMENTS = {
    "software": r"heads-up on (?P<thing>\S+): (?P<cause>.+), whoever",
    "game": r"overhear a whisper: (?P<cause>.+) into the (?P<thing>.+)\.",
    "web": r"inbox \(1\): regarding (?P<thing>[^,]+), (?P<cause>.+)",
    "database": r"NOTICE:  about (?P<thing>\S+): (?P<cause>.+)",
    "operations": r"note for (?P<thing>\S+): (?P<cause>.+)",
    "embodied": r"Note on the door about the (?P<thing>\w+): (?P<cause>.+)\.",
}


def replay(reader: Reader, steps: Iterable[Step]) -> dict[str, Course]:
    """Values of every state with the step they were first seen at."""
    courses: dict[str, Course] = {}
    for step in steps:
        for state, value in reader(step.action, step.observation):
            course = courses.setdefault(state, [])
            if not course or course[-1][1] != value:
                course.append((step.index, value))
    return courses


def state_in(text: str, courses: dict[str, Course]) -> str:
    """The longest known state the question names."""
    named = [state for state in courses if state.casefold() in text.casefold()]
    assert named, text
    return max(named, key=len)


def tally(steps: Sequence[Step], domain: str, text: str) -> str:
    counts = Counter(re.findall(FAILURES[domain], log_of(steps), re.M))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason} { {1: 'once', 2: 'twice'}.get(n, f'{n} times') }" for reason, n in ranked)


def goals(steps: Sequence[Step], domain: str, text: str) -> str:
    found = re.findall(GOALS[domain], log_of(steps), re.M)
    return ", then ".join(found[:5] if "first 5" in text else found[-5:] if "last 5" in text else found)


def goal_at_step(steps: Sequence[Step], domain: str, text: str) -> str:
    starts = [step for step in steps[: step_in(text) + 1] if step.action == GOAL_ACTIONS[domain]]
    return re.findall(GOAL_STARTS[domain], starts[-1].observation)[0]


def refusal_cause(steps: Sequence[Step], domain: str, text: str) -> str:
    refused = steps[step_in(text)]
    announced = re.finditer(ANNOUNCEMENTS[domain], log_of(steps[: refused.index]))
    return [found["cause"] for found in announced if found["thing"] in refused.action][-1]


def shown_at(steps: Sequence[Step], text: str) -> int:
    identifier = re.findall(r"[A-Z]{2,}-\d+", text)[0]
    return next(step.index for step in steps if re.search(rf"{identifier}\b", step.observation))


def action_near_identifier(steps: Sequence[Step], domain: str, text: str) -> str:
    return steps[shown_at(steps, text) + (-1 if "before" in text else 1)].action


def value_at_identifier(steps: Sequence[Step], domain: str, text: str) -> str:
    courses = replay(READERS[domain], steps)
    course = courses[state_in(text, courses)]
    return [reached for step, reached in course if step <= shown_at(steps, text)][-1]


def value(steps: Sequence[Step], domain: str, text: str, pick: Callable[[Course, str], str]) -> str:
    courses = replay(READERS[domain], steps)
    return pick(courses[state_in(text, courses)], text)


def latest(course: Course, text: str) -> tuple[int, str]:
    return [change for change in course if change[0] <= step_in(text)][-1]


def last_change(course: Course, text: str) -> str:
    step, reached = latest(course, text)
    return f"at step {step}, to {reached}"


def log_of(steps: Sequence[Step]) -> str:
    return "\n".join(step.observation for step in steps)


def step_in(text: str) -> int:
    return int(re.findall(r"step (\d+)", text)[0])


ANSWERS: dict[str, Callable[[Sequence[Step], str, str], str]] = {
    "failure_tally": tally,
    "goals_in_order": goals,
    "goal_at_step": goal_at_step,
    "refusal_cause": refusal_cause,
    "value_at_identifier": value_at_identifier,
    "step_action": lambda steps, _, text: steps[step_in(text)].action,
    "after_identifier": action_near_identifier,
    "before_identifier": action_near_identifier,
    "value_history": partial(value, pick=lambda course, _: ", then ".join(reached for _, reached in course)),
    "first_value": partial(value, pick=lambda course, _: course[0][1]),
    "final_value": partial(value, pick=lambda course, _: course[-1][1]),
    "only_value": partial(value, pick=lambda course, _: course[-1][1]),
    "value_at_step": partial(value, pick=lambda course, text: latest(course, text)[1]),
    "last_change": partial(value, pick=last_change),
}


@pytest.mark.parametrize("number", range(24))
@pytest.mark.parametrize("steps", [12, 60, 300])
def test_gold_agrees_with_a_reading_of_the_log(number: int, steps: int) -> None:
    episode = design_episode(SyntheticSettings(seed=7, episodes=1, steps=steps, questions=60), number)
    checked = 0
    for question in episode.designed:
        answer = ANSWERS.get(question.kind.name)
        if answer is not None:
            found = answer(episode.episode.trajectory.steps, episode.episode.domain, question.draft.text)
            assert question.draft.answer == found, question
            checked += 1
    assert checked >= 8


def test_every_environment_is_replayed() -> None:
    settings = SyntheticSettings(seed=7, episodes=1, steps=10, questions=1)
    assert {design_episode(settings, number).episode.domain for number in range(24)} == READERS.keys()
