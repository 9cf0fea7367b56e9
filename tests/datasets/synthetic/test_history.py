"""The index of a finished simulation, against hand-worked cases."""

from mesa_pipeline.datasets.synthetic.events import Change, GoalFinished, GoalStarted, Relation, Turn
from mesa_pipeline.datasets.synthetic.history import At, History, Loop, StateKey


def history(*actions: str) -> History:
    return History.of(Turn(action, "") for action in actions)


def test_steps_count_from_zero() -> None:
    made = history("a", "b", "c")
    assert [step.index for step in made.steps] == [0, 1, 2]
    assert made.last == 2


def test_loops_are_longest_alternations_of_at_least_four_steps() -> None:
    assert history(*"xababcy").loops == [Loop(1, 4)]
    assert history(*"ababab").loops == [Loop(0, 5)]
    assert history(*"ababcbcb").loops == [Loop(0, 3), Loop(3, 7)]
    assert history(*"aaaaaa").loops == []
    assert history(*"abac").loops == []
    assert history().loops == []


def test_repeated_reports_of_a_value_are_no_change() -> None:
    reports = [Turn("look", "", (Change("lamp", "state", value),)) for value in ("on", "on", "off", "on")]
    course = History.of(reports).changes[StateKey("lamp", "state")]
    assert [(change.step, change.event.value) for change in course] == [(0, "on"), (2, "off"), (3, "on")]


def test_the_last_report_of_a_step_counts() -> None:
    events = (Change("lamp", "state", "on"), Change("lamp", "state", "off"))
    course = History.of([Turn("flick twice", "", events)]).changes[StateKey("lamp", "state")]
    assert [change.event.value for change in course] == ["off"]


def test_facts_that_were_contradicted_are_no_facts() -> None:
    turns = [
        Turn("a", "", (Relation("key", "opens", "chest"), Relation("cat", "owned_by", "Ann"))),
        Turn("b", "", (Relation("key", "opens", "door"), Relation("cat", "owned_by", "Ann"))),
    ]
    assert {key: stated.step for key, stated in History.of(turns).facts.items()} == {StateKey("cat", "owned_by"): 0}


def test_the_open_goal_is_the_last_one_started_unless_finished() -> None:
    started, finished = Turn("a", "", (GoalStarted("tidy"),)), Turn("b", "", (GoalFinished("tidy"),))
    unfinished = History.of([started])
    assert unfinished.open_goal == At(0, GoalStarted("tidy"))
    assert History.of([started, finished]).open_goal is None
    assert history("a").open_goal is None
