"""Asking: what is built, what a policy is shown, and what a budget changes."""

from dataclasses import dataclass, field

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.llm import Message
from mesa_pipeline.llm.metering import metered_chat
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.policies import FittedPolicy, FixedPolicy, PolicyInput
from mesa_pipeline.policies.budget import TokenBudget
from mesa_pipeline.reading.previews import preview
from mesa_pipeline.stages.ask import MemoryShelf, ask
from mesa_pipeline.stages.models import embedder_opener, open_reading, structures_of
from mesa_pipeline.structures.sufficiency import LlmSufficiencyChecker
from mesa_pipeline.structures.temporal import Checking, TemporalMemory
from mesa_pipeline.subsets import FULL_SUBSET, STRUCTURE_CODES, encode
from mesa_pipeline.types import Step, Trajectory

QUESTION = "What did the drawer hold?"
STEPS = [Step(0, "open drawer", "It holds a brass key."), *(Step(k, f"walk {k}", f"A corridor {k}.") for k in range(1, 12))]
HOUSE = Trajectory("house", "Leave the house", tuple(STEPS))


@dataclass
class Watched:
    """A policy that keeps what it was shown."""

    mask: int
    reads_previews: bool
    shown: list[PolicyInput] = field(default_factory=list)

    def select(self, question: PolicyInput) -> int:
        self.shown.append(question)
        return self.mask

    def explain(self, question: PolicyInput, chosen: int) -> str:
        return "because"


@pytest.fixture
def answer(tmp_path, small_settings):
    """Asks the question about the house, and says which structures were built."""
    reading = open_reading(small_settings, Layout(tmp_path, "asked"))
    shelf = MemoryShelf(structures_of(small_settings, tmp_path), Layout(tmp_path, "asked"))

    def answered(policy, limit=None):
        budget = None if limit is None else TokenBudget(limit)
        return ask(QUESTION, HOUSE, policy, shelf, reading, small_settings.previews, budget)

    return answered


def built(tmp_path) -> set[str]:
    return {path.name for path in (tmp_path / "asked" / "memories").iterdir()}


def test_a_policy_that_reads_previews_is_shown_all_five(answer, small_settings, tmp_path):
    policy = Watched(encode("R"), reads_previews=True)
    result = answer(policy)
    (shown,) = policy.shown
    counter = open_reading(small_settings, Layout(tmp_path, "asked")).counter
    assert set(shown.previews) == set(STRUCTURE_CODES)
    assert shown.previews["R"] == preview(result.evidence["R"], small_settings.previews, counter)
    assert len(built(tmp_path)) == 5
    assert set(result.evidence) == {"R"}


class Asking:
    """A checker that counts, and always wants the last step."""

    def __init__(self) -> None:
        self.asked = 0

    def identity(self):
        return {"kind": "asking"}

    def request(self, question, candidates, known):
        self.asked += 1
        return [known.stop - 1]


@pytest.mark.parametrize(("selected", "asked"), [("R", 0), ("TR", 1)])
def test_previews_never_ask_a_checker(small_settings, tmp_path, selected, asked):
    checker = Asking()
    structures = structures_of(small_settings, tmp_path)
    limits, bm25 = small_settings.structures.temporal, small_settings.stores.bm25
    embedder = embedder_opener(small_settings, tmp_path)
    checked = TemporalMemory(limits, bm25, small_settings.evidence.max_chars_per_step, Checking(checker, embedder))
    shelf = MemoryShelf({**structures, "T": checked}, Layout(tmp_path, "asked"))
    policy = Watched(encode(selected), reads_previews=True)
    reading = open_reading(small_settings, Layout(tmp_path, "asked"))
    result = ask(QUESTION, HOUSE, policy, shelf, reading, small_settings.previews)
    assert 11 not in policy.shown[0].previews["T"].step_ids
    assert checker.asked == asked
    if "T" in selected:
        assert [item.steps for item in result.evidence["T"].items] == [(11,)]


def test_one_that_does_not_is_shown_none_and_nothing_more_is_built(answer, tmp_path):
    policy = Watched(encode("R"), reads_previews=False)
    answer(policy)
    assert policy.shown[0].previews == {}
    assert built(tmp_path) == {"raw"}


def test_a_budget_that_the_choice_fits_changes_nothing(answer, tmp_path):
    policy = Watched(encode("TR"), reads_previews=False)
    free, bound = answer(policy), answer(policy, 10**9)
    assert (bound.answer, bound.evidence, bound.composed) == (free.answer, free.evidence, free.composed)
    assert bound.budget.kept
    assert free.budget is None
    assert built(tmp_path) == {"raw", "temporal"}


@pytest.mark.parametrize("limit", [0, 1, 12, 40, 100])
def test_a_budget_is_never_exceeded(answer, small_settings, tmp_path, limit):
    result = answer(FittedPolicy(FixedPolicy(encode("SRT")), {}), limit)
    counter = open_reading(small_settings, Layout(tmp_path, "asked")).counter
    assert counter.count(result.composed.text) <= limit
    assert not result.budget.kept
    assert f"{limit:,} allowed" in result.reason
    assert result.answer.error is None


@pytest.mark.parametrize("limit", [None, 10**9])
def test_a_trace_tells_what_was_chosen_read_composed_and_answered_with_tokens_and_seconds(answer, limit):
    result = answer(Watched(encode("TR"), reads_previews=False), limit)
    whole, *parts = result.trace.spans
    named = {span.name: span for span in parts}
    done = [name for name in named if not name.startswith(("open", "build"))]
    if limit is None:
        assert done == ["select", "retrieve temporal", "retrieve raw", "compose", "answer"]
    assert {"select", "retrieve temporal", "retrieve raw", "compose", "answer"} == set(done)
    assert {"open temporal", "open raw", "build temporal", "build raw"} <= set(named), "nothing was there"
    assert all(whole.started <= span.started < span.ended <= whole.ended for span in parts)
    assert (named["select"].outputs["structures"], named["select"].outputs["reason"]) == ("T+R", "because")
    for name, code in (("temporal", "T"), ("raw", "R")):
        told = named[f"retrieve {name}"].outputs["items"]
        assert [item["steps"] for item in told] == [list(item.steps) for item in result.evidence[code].items]
    assert sum(named["compose"].outputs["tokens"].values()) <= named["compose"].attributes["evidence_tokens"]
    assert named["answer"].tokens["read"] == result.composed.tokens == whole.attributes["evidence_tokens"]
    assert named["answer"].tokens["written"] > 0
    assert whole.outputs["answer"] == result.answer.text


def test_a_trace_tells_what_retrieving_asked_a_language_model_for(small_settings, tmp_path):
    model = ScriptedModel(["NEED_STEPS: 11"])
    checker = LlmSufficiencyChecker(metered_chat(lambda role, schema, max_tokens: model), 3, 8000)
    limits, bm25 = small_settings.structures.temporal, small_settings.stores.bm25
    checked = TemporalMemory(limits, bm25, 8000, Checking(checker, embedder_opener(small_settings, tmp_path)))
    shelf = MemoryShelf({**structures_of(small_settings, tmp_path), "T": checked}, Layout(tmp_path, "asked"))
    reading = open_reading(small_settings, Layout(tmp_path, "asked"))
    policy = Watched(encode("TR"), reads_previews=True)
    spans = {span.name: span for span in ask(QUESTION, HOUSE, policy, shelf, reading, small_settings.previews).trace.spans}
    (prompt,) = model.asked
    read = sum(len(message.content.split()) for message in prompt)
    temporal = spans["retrieve temporal"]
    assert (temporal.attributes["calls"], temporal.tokens) == (1, {"read": read, "written": 2})
    assert temporal.attributes["embedded_texts"] == 1
    assert spans["build temporal"].attributes["embedded_texts"] == len(STEPS)
    for name in ("preview temporal", "retrieve raw", "select"):
        assert (spans[name].attributes["calls"], spans[name].tokens) == (0, {}), name
    for name in ("preview temporal", "retrieve temporal", "retrieve raw", "select", "build raw"):
        assert spans[name].attributes["seconds"] > 0, name


def test_a_trace_tells_what_a_policy_asked_a_language_model_for(small_settings, tmp_path):
    model = metered_chat(lambda role, schema, max_tokens: ScriptedModel(["R, I think"]))("select")

    class Choosing(Watched):
        def select(self, question: PolicyInput) -> int:
            model.complete([Message("user", "which of them"), Message("user", "is best?")])
            return super().select(question)

    shelf = MemoryShelf(structures_of(small_settings, tmp_path), Layout(tmp_path, "asked"))
    reading = open_reading(small_settings, Layout(tmp_path, "asked"))
    result = ask(QUESTION, HOUSE, Choosing(encode("R"), False), shelf, reading, small_settings.previews)
    (select,) = [span for span in result.trace.spans if span.name == "select"]
    assert (select.attributes["calls"], select.tokens) == (1, {"read": 5, "written": 3})


def test_nothing_read_is_no_answer(answer):
    result = answer(FittedPolicy(FixedPolicy(FULL_SUBSET), {}), 0)
    assert (result.subset, result.evidence, result.answer.text) == (0, {}, "")
