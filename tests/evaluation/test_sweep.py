"""The sweep of one question: shared answers, failures that are not wrong answers, and answers of any kind."""

import json
from collections.abc import Callable

import pytest

from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.evaluation.rewards import TokenF1
from mesa_pipeline.evaluation.sweep import Reading, sweep_question
from mesa_pipeline.stages.storage import outcome_record
from mesa_pipeline.subsets import ALL_SUBSETS, encode, prefix_order
from mesa_pipeline.types import Answer, ComposedEvidence, Evidence, EvidenceItem, Outcome, Question

QUESTION = Question("e#0", "What is in the drawer?", "recall", "a red key")
EVIDENCE = {
    "S": Evidence("S", (EvidenceItem("The agent found a red key.", (3,)),)),
    "T": Evidence("T", (EvidenceItem("Step 3\nObservation: a red key", (3,), is_record=True),)),
    "G": Evidence("G"),
    "V": Evidence("V"),
    "R": Evidence("R", (EvidenceItem("Step 3\nObservation: a red key", (3,), is_record=True),)),
}


class WordCounter:
    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


class ScriptedReader:
    """Answers as told and remembers the evidence it was shown."""

    name = "scripted"

    def __init__(self, reply: Callable[[str], Answer]) -> None:
        self._reply = reply
        self.shown: list[str] = []

    def identity(self) -> dict[str, str]:
        return {}

    def answer(self, question: str, task: str, composed: ComposedEvidence) -> Answer:
        self.shown.append(composed.text)
        return self._reply(composed.text)


def swept(reply: Callable[[str], Answer] | str, evidence=EVIDENCE) -> tuple[list[Outcome], ScriptedReader]:
    reader = ScriptedReader((lambda _: Answer(reply)) if isinstance(reply, str) else reply)
    reading = Reading(reader, WordCounter(), TokenF1("ama_bench"))
    return sweep_question(QUESTION, "open it", evidence, prefix_order(), reading), reader


def test_every_subset_has_one_outcome_in_the_order_asked():
    outcomes, _ = swept("red key")
    assert [outcome.subset for outcome in outcomes] == list(prefix_order())
    assert {outcome.subset for outcome in outcomes} == set(ALL_SUBSETS)
    assert all(outcome.score == 1.0 and outcome.question_id == "e#0" for outcome in outcomes)


def test_subsets_with_equal_evidence_share_one_call():
    """G and V returned nothing: the 31 subsets differ only in S, T and R, or are empty."""
    outcomes, reader = swept("red key")
    assert len(reader.shown) == len(set(reader.shown)) == 8
    tokens = {outcome.subset: outcome.tokens for outcome in outcomes}
    assert tokens[encode("S")] == tokens[encode("SG")] == tokens[encode("SGV")] > 0
    assert tokens[encode("GV")] == 0


def test_no_evidence_at_all_is_read_once_and_costs_nothing():
    outcomes, reader = swept("", {code: Evidence(code) for code in "STGVR"})
    assert reader.shown == [""]
    assert {outcome.tokens for outcome in outcomes} == {0}


def test_an_empty_answer_is_a_wrong_answer():
    outcomes, _ = swept("")
    assert {(outcome.score, outcome.error) for outcome in outcomes} == {(0.0, None)}


def test_a_reader_that_failed_is_unscored_and_the_other_subsets_go_on():
    def reply(evidence: str) -> Answer:
        return Answer("", error="timed out") if "Excerpts" in evidence else Answer("red key")

    outcomes, _ = swept(reply)
    for outcome in outcomes:
        failed = bool(outcome.subset & encode("R"))
        assert (outcome.score, outcome.error) == ((None, "timed out") if failed else (1.0, None))
        assert outcome.tokens > 0 or not outcome.subset & encode("STR")


@pytest.mark.parametrize("answer", ["ok \ud83d", "\x00", "\u202e\u05e9", "{0} %s", "x" * 100_000])
def test_any_answer_can_be_stored_and_read_again(answer: str):
    outcomes, _ = swept(answer)
    stored = [json.loads(dump_json(outcome_record(outcome))) for outcome in outcomes]
    assert [Outcome(**record) for record in stored] == outcomes
