"""Causal: what hangs on what, why something was refused, what an action brought about."""

from collections import defaultdict
from collections.abc import Iterator

from mesa_pipeline.datasets.synthetic.events import Announcement, Change, Failure, Refusal, Relation, Remedy
from mesa_pipeline.datasets.synthetic.history import At, History, StateKey
from mesa_pipeline.datasets.synthetic.questions.design import Draft, Kind, Subject
from mesa_pipeline.datasets.synthetic.questions.recall import MAX_ACTION_CHARS

MIN_STEPS_APART = 6  # so that no window of raw steps is likely to hold both facts
REFUSAL_CAUSE = (
    "Why did the attempt at step {step} get nowhere?",
    "The action at step {step} was turned down. What was behind that?",
    "What earlier development explains the refusal at step {step}?",
)
REMEDY = (
    "After the refusal at step {step}, which action cleared the obstacle?",
    "{agent} was turned away at step {step}. What did {agent} do that finally removed the cause?",
)
EFFECT = (
    "What changed at step {step}?",
    "Which change of state came about at step {step}?",
    "What was different once step {step} was over?",
)
SOURCE = (
    "Which action first revealed {state}?",
    "What did {agent} do to come to know {state}?",
)
LINKED_RESPONSE = (
    "When work on {entity} failed for the first time, what did {agent} do next?",
    "How did {agent} react, in the next action, to the first failure concerning {entity}?",
)


def relation_chain(subject: Subject) -> Iterator[Draft]:
    """Two facts stated at different steps; the question names only the first head."""
    facts = subject.history.facts
    by_head: dict[str, list[At[Relation]]] = defaultdict(list)
    for stated in facts.values():
        by_head[stated.event.head].append(stated)
    for first in subject.shuffled(facts.values()):
        for second in subject.shuffled(by_head.get(first.event.tail, ())):
            if second.event.tail == first.event.head or not _stated_apart(subject.history, first.event, second.event):
                continue
            middle = subject.wording.relations[first.event.relation].description.format(entity=first.event.head)
            text = subject.phrase(subject.wording.relations[second.event.relation].questions, entity=middle)
            steps = (min(first.step, second.step), max(first.step, second.step))
            yield Draft(text, second.event.tail, steps, (first.event.tail, second.event.tail))


def _stated_apart(history: History, first: Relation, second: Relation) -> bool:
    """Whether every statement of one relation is some steps away from every statement of the other."""
    others = _statements(history, second)
    return all(abs(step - other) >= MIN_STEPS_APART for step in _statements(history, first) for other in others)


def _statements(history: History, relation: Relation) -> list[int]:
    return history.statements[StateKey(relation.head, relation.relation)]


def step_relation(subject: Subject) -> Iterator[Draft]:
    """The step says what was worked on, another step what that is related to."""
    history = subject.history
    facts_by_head: dict[str, list[At[Relation]]] = defaultdict(list)
    for stated in history.facts.values():
        facts_by_head[stated.event.head].append(stated)
    for step in subject.shuffled(range(len(history))):
        facts = _facts_about_touched(history, facts_by_head, step)
        for stated in subject.shuffled(facts):
            relation = subject.wording.relations[stated.event.relation]
            middle = f"the {relation.head_noun} {subject.wording.agent} dealt with at step {step}"
            text = subject.phrase(relation.questions, entity=middle)
            steps = (min(step, stated.step), max(step, stated.step))
            yield Draft(text, stated.event.tail, steps, (stated.event.head, stated.event.tail))


def _facts_about_touched(history: History, facts_by_head: dict[str, list[At[Relation]]], step: int) -> list[At[Relation]]:
    """Facts about the one thing the action of a step names, as far as the step itself and its head noun leave no doubt."""
    action = history.steps[step].action
    touched = {event.entity for event in history.events[step] if isinstance(event, Change | Failure | Refusal | Remedy)}
    named = sorted(entity for entity in touched if entity in action)
    if len(named) != 1:
        return []
    return [
        stated
        for stated in facts_by_head.get(named[0], ())
        if all(abs(step - other) >= MIN_STEPS_APART for other in _statements(history, stated.event))
    ]


def refusal_cause(subject: Subject) -> Iterator[Draft]:
    """A refusal that does not say why; the reason went by much earlier."""
    for announced, refused in subject.shuffled(_refusals(subject.history)):
        if not subject.history.mentions(refused.step, announced.event.cause):
            text = subject.phrase(REFUSAL_CAUSE, step=refused.step)
            facts = (announced.event.cause, announced.event.entity)
            yield Draft(text, announced.event.cause, (announced.step, refused.step), facts)


def remedy(subject: Subject) -> Iterator[Draft]:
    """What removed the cause of a refusal, some steps later."""
    history = subject.history
    remedies: dict[str, list[At[Remedy]]] = defaultdict(list)
    for cleared in history.all(Remedy):
        remedies[cleared.event.entity].append(cleared)
    for _, refused in subject.shuffled(_refusals(history)):
        later = [cleared for cleared in remedies.get(refused.event.entity, ()) if cleared.step > refused.step]
        if later and len(history.steps[later[0].step].action) <= MAX_ACTION_CHARS:
            action = history.steps[later[0].step].action
            text = subject.phrase(REMEDY, step=refused.step)
            yield Draft(text, action, (refused.step, later[0].step), (action,))


def _refusals(history: History) -> list[tuple[At[Announcement], At[Refusal]]]:
    latest: dict[str, At[Announcement]] = {}
    found: list[tuple[At[Announcement], At[Refusal]]] = []
    for step, events in enumerate(history.events):
        refused = [event for event in events if isinstance(event, Refusal)]
        found.extend((latest[event.entity], At(step, event)) for event in refused if event.entity in latest)
        for event in events:
            if isinstance(event, Announcement):
                latest[event.entity] = At(step, event)
    return found


def action_effect(subject: Subject) -> Iterator[Draft]:
    """The changes one step made; first reports are none."""
    by_step: dict[int, list[tuple[StateKey, str]]] = defaultdict(list)
    for key, course in subject.history.changes.items():
        for change in course[1:]:
            by_step[change.step].append((key, change.event.value))
    for step in subject.shuffled(by_step):
        effects = by_step[step]
        if len(effects) <= 2:
            answer = "; ".join(f"{subject.wording.attribute(*key)} became {value}" for key, value in effects)
            text = subject.phrase(EFFECT, step=step)
            yield Draft(text, answer, (step,), tuple(value for _, value in effects))


def source_of_value(subject: Subject) -> Iterator[Draft]:
    """The action that first showed some state: what the shortest log still supports."""
    history = subject.history
    for key, course in subject.shuffled(history.changes.items()):
        action = history.steps[course[0].step].action
        if len(action) <= MAX_ACTION_CHARS:
            text = subject.phrase(SOURCE, state=subject.wording.attribute(*key))
            yield Draft(text, action, (course[0].step,), (action, course[0].event.value))


def linked_response(subject: Subject) -> Iterator[Draft]:
    """A failure known only by a relation of the thing that failed, and the step that came after it."""
    history = subject.history
    failures: dict[str, list[At[Failure]]] = defaultdict(list)
    for failure in history.failures:
        failures[failure.event.entity].append(failure)
    for stated in subject.shuffled(history.facts.values()):
        found = failures.get(stated.event.tail, ())
        if not found or found[0].step in (stated.step, history.last):
            continue
        step = found[0].step
        action = history.steps[step + 1].action
        if len(action) <= MAX_ACTION_CHARS and not history.mentions(step, stated.event.head):
            entity = subject.wording.relations[stated.event.relation].description.format(entity=stated.event.head)
            text = subject.phrase(LINKED_RESPONSE, entity=entity)
            yield Draft(text, action, tuple(sorted({stated.step, step, step + 1})), (stated.event.tail, action))


KINDS = (
    Kind("relation_chain", "causal", ("G",), relation_chain),
    Kind("step_relation", "causal", ("T", "G"), step_relation),
    Kind("refusal_cause", "causal", ("T", "G"), refusal_cause),
    Kind("remedy", "causal", ("R",), remedy),
    Kind("action_effect", "causal", ("T",), action_effect),
    Kind("linked_response", "causal", ("G", "R"), linked_response),
)
FALLBACK_KINDS = (Kind("source_of_value", "causal", ("V",), source_of_value),)
