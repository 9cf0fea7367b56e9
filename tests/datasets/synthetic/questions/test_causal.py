"""Causal questions over a hand-made history whose answers are plain to see."""

from collections.abc import Callable, Iterator
from random import Random

from mesa_pipeline.datasets.synthetic.events import Announcement, Change, Event, Failure, Refusal, Relation, Remedy, Turn
from mesa_pipeline.datasets.synthetic.history import History
from mesa_pipeline.datasets.synthetic.questions import causal
from mesa_pipeline.datasets.synthetic.questions.design import Draft, Subject
from mesa_pipeline.datasets.synthetic.wording import RelationWording, Wording

WORDING = Wording(
    agent="the agent",
    attributes={"lid": "the lid of the {entity}"},
    relations={
        "kept_in": RelationWording(("Where is {entity} kept?",), "the place of the {entity}", "tool"),
        "opened_by": RelationWording(("What opens {entity}?",), "the opener of the {entity}", "box"),
    },
    topics=(),
)


def turn(action: str, observation: str = "", *events: Event) -> Turn:
    return Turn(action, observation, events)


def drafts(kind: Callable[[Subject], Iterator[Draft]], *turns: Turn) -> list[Draft]:
    return list(kind(Subject(History.of(turns), WORDING, Random(0))))


SAW = turn("read tag", "saw kept in crate", Relation("saw", "kept_in", "crate"))
CRATE = turn("read lid", "crate opened by crowbar", Relation("crate", "opened_by", "crowbar"))
WAIT = turn("wait")


def test_a_chain_joins_two_distant_facts() -> None:
    (draft,) = drafts(causal.relation_chain, SAW, *[WAIT] * 5, CRATE)
    assert draft == Draft("What opens the place of the saw?", "crowbar", (0, 6), ("crate", "crowbar"))


def test_facts_once_stated_close_together_make_no_chain() -> None:
    assert not drafts(causal.relation_chain, SAW, *[WAIT] * 5, CRATE, SAW)


def test_a_contradicted_fact_makes_no_chain() -> None:
    moved = turn("read tag", "saw kept in shed", Relation("saw", "kept_in", "shed"))
    assert not drafts(causal.relation_chain, SAW, *[WAIT] * 5, CRATE, *[WAIT] * 5, moved)


def test_a_step_names_the_thing_that_a_distant_fact_is_about() -> None:
    kick = turn("kick crate", "nothing (E-1)", Failure("crate", "nothing", "E-1"))
    (draft,) = drafts(causal.step_relation, CRATE, *[WAIT] * 5, kick)
    assert draft == Draft("What opens the box the agent dealt with at step 6?", "crowbar", (0, 6), ("crate", "crowbar"))


def test_a_refusal_goes_back_to_the_latest_announcement() -> None:
    turns = (
        turn("wait", "crate: rusted", Announcement("crate", "rusted")),
        turn("wait", "crate: nailed shut", Announcement("crate", "nailed shut")),
        turn("wait", "shed: locked", Announcement("shed", "locked")),
        turn("open crate", "no", Refusal("crate")),
        WAIT,
        turn("pull nails", "out", Remedy("crate")),
        turn("oil hinge", "done", Remedy("crate")),
    )
    (cause,) = drafts(causal.refusal_cause, *turns)
    assert (cause.answer, cause.steps) == ("nailed shut", (1, 3))
    (cure,) = drafts(causal.remedy, *turns)
    assert (cure.answer, cure.steps) == ("pull nails", (3, 5))


def test_effects_are_changes_and_not_first_reports() -> None:
    turns = [turn(action, value, Change("crate", "lid", value)) for action, value in (("look", "shut"), ("lift", "open"))]
    (draft,) = drafts(causal.action_effect, *turns)
    assert (draft.answer, draft.steps) == ("the lid of the crate became open", (1,))


def test_the_response_is_the_action_after_the_first_failure() -> None:
    kick = turn("kick it", "the crate holds (E-1)", Failure("crate", "holds", "E-1"))
    again = turn("kick again", "the crate holds (E-2)", Failure("crate", "holds", "E-2"))
    (draft,) = drafts(causal.linked_response, SAW, kick, turn("fetch hammer"), again, WAIT)
    assert (draft.answer, draft.steps) == ("fetch hammer", (0, 1, 2))
    assert "the place of the saw" in draft.text
