"""The temporal store: named steps, the lexical fallback, long ranges and the checker's seam."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError, ModelError
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.structures.temporal import Checking, SufficiencyChecker, TemporalMemory
from mesa_pipeline.types import Evidence, Step, Trajectory


class AskingFor:
    """A checker that always wants the same steps, and remembers what it was shown."""

    def __init__(self, *steps: int) -> None:
        self.steps = steps
        self.candidates: list[int] = []
        self.known = range(0)

    def identity(self) -> Mapping[str, Any]:
        return {"name": "asking-for", "steps": list(self.steps)}

    def request(self, question: str, candidates: Sequence[Step], known: range) -> Sequence[int]:
        self.candidates = [step.index for step in candidates]
        self.known = known
        return self.steps


class CountingLetters:
    """An embedder for which texts with the same letters are alike."""

    name = "letters"
    dimensions = 26

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = [[text.lower().count(chr(ord("a") + k)) for k in range(self.dimensions)] for text in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), self.dimensions)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def make(settings: Settings, checker: SufficiencyChecker | None = None, **selection: int) -> TemporalMemory:
    limits = settings.structures.temporal.model_copy(update=selection)
    checking = Checking(checker, CountingLetters) if checker else None
    return TemporalMemory(limits, settings.stores.bm25, settings.evidence.max_chars_per_step, checking)


@pytest.fixture
def temporal(settings: Settings) -> TemporalMemory:
    return make(settings)


def rooms(count: int, **observations: str) -> Trajectory:
    steps = [Step(k, f"go to room {k}", observations.get(f"at_{k}", f"nothing {k}")) for k in range(count)]
    return Trajectory("t", "task", tuple(steps))


def shown(evidence: Evidence) -> list[int]:
    return [step for item in evidence.items if item.is_record for step in item.steps]


def test_named_steps_are_shown_once_and_in_time_order(temporal: TemporalMemory) -> None:
    evidence = temporal.retrieve(temporal.build(rooms(31)), "Compare step 9, steps 3-5 and step 4 with turn 20.")
    assert shown(evidence) == [3, 4, 5, 9, 20]
    assert evidence.items[0].text == serialize_step(Step(3, "go to room 3", "nothing 3")).text
    assert all(item.score is None for item in evidence.items)
    assert not evidence.truncated


def test_without_a_reference_the_best_steps_by_words_are_shown(temporal: TemporalMemory) -> None:
    memory = temporal.build(rooms(30, at_7="a brass key", at_21="brass and a brass bell", at_2="a key"))
    evidence = temporal.retrieve(memory, "Where was the brass key?")
    assert shown(evidence) == [2, 7, 21]
    scores = {item.steps[0]: item.score for item in evidence.items}
    assert max(scores, key=lambda step: scores[step] or 0) == 7


def test_at_most_five_steps_match_by_words(temporal: TemporalMemory) -> None:
    assert len(shown(temporal.retrieve(temporal.build(rooms(30)), "nothing"))) == 5


def test_nothing_in_common_gives_nothing(temporal: TemporalMemory) -> None:
    assert temporal.retrieve(temporal.build(rooms(30)), "zebra?").is_empty
    assert temporal.retrieve(temporal.build(rooms(30)), "").is_empty


def test_references_beyond_the_end_fall_back_to_words(temporal: TemporalMemory) -> None:
    evidence = temporal.retrieve(temporal.build(rooms(20, at_4="a brass key")), "Was the brass key seen at step 31?")
    assert 4 in shown(evidence)


def test_indices_are_the_datas_own(temporal: TemporalMemory) -> None:
    steps = tuple(Step(index, "look", f"room {index}") for index in (3, 5, 9))
    memory = temporal.build(Trajectory("t", "task", steps))
    assert shown(temporal.retrieve(memory, "until step 6")) == [3, 5]
    assert shown(temporal.retrieve(memory, "step 9")) == [9]


def test_a_long_prefix_keeps_its_end_and_what_matches_and_lists_all_actions(
    temporal: TemporalMemory, settings: Settings
) -> None:
    memory = temporal.build(rooms(150, at_11="a brass key", at_140="a brass key"))
    evidence = temporal.retrieve(memory, "Until step 120, where was the brass key?")
    kept = shown(evidence)
    assert len(kept) == settings.structures.temporal.max_steps
    assert {11, 119, 120} <= set(kept) <= set(range(121))
    listing = evidence.items[0]
    assert not listing.is_record
    assert listing.steps == tuple(range(121))
    assert [line.split(": ")[1] for line in listing.text.splitlines()[1:]] == [f"go to room {k}" for k in range(121)]
    assert evidence.truncated


def test_a_long_suffix_keeps_its_beginning(settings: Settings) -> None:
    temporal = make(settings, max_steps=4)
    assert shown(temporal.retrieve(temporal.build(rooms(150)), "after step 100")) == [100, 101, 102, 103]


def test_the_list_of_actions_has_limits(settings: Settings) -> None:
    temporal = make(settings, max_steps=2, max_listed=3, max_listed_chars=100)
    steps = tuple(Step(k, "x" * 5000, "") for k in range(50))
    listing = temporal.retrieve(temporal.build(Trajectory("t", "task", steps)), "until step 40").items[0]
    assert listing.steps == (38, 39, 40)
    assert len(listing.text) < 500


def test_a_long_record_is_clipped(temporal: TemporalMemory, settings: Settings) -> None:
    evidence = temporal.retrieve(temporal.build(rooms(3, at_1="x" * 1_100_000)), "step 1")
    assert evidence.truncated
    assert len(evidence.items[0].text) <= settings.evidence.max_chars_per_step


def test_a_checker_adds_steps_to_those_named(settings: Settings) -> None:
    checker = AskingFor(25, 999)
    temporal = make(settings, checker)
    memory = temporal.build(rooms(30, at_7="a brass key"))
    assert shown(temporal.retrieve(memory, "Did step 3 find the brass key?")) == [3, 25]
    assert 7 in checker.candidates
    assert temporal.retrieve_identity() != make(settings).retrieve_identity()


def test_a_satisfied_checker_leaves_the_fallback_in_place(settings: Settings) -> None:
    temporal = make(settings, AskingFor())
    memory = temporal.build(rooms(30, at_7="a brass key"))
    assert shown(temporal.retrieve(memory, "Who has the brass key?")) == [7]


def test_a_checker_judges_by_the_five_steps_most_alike_not_by_words(settings: Settings) -> None:
    checker = AskingFor()
    temporal = make(settings, checker)
    memory = temporal.build(rooms(30, at_7="zzzzzzzzzzzzzzzzzzzzzz yyyyyyyyyyyyyyyy"))
    temporal.retrieve(memory, "zyzyzyzzy")
    assert 7 in checker.candidates
    assert len(checker.candidates) == 5
    assert checker.candidates == sorted(checker.candidates)
    assert checker.known == range(30)


def test_steps_asked_for_never_push_out_those_named(settings: Settings) -> None:
    temporal = make(settings, AskingFor(*range(20, 40)), max_steps=6)
    memory = temporal.build(rooms(50))
    assert shown(temporal.retrieve(memory, "Compare step 1 and step 2.")) == [1, 2, 20, 21, 22, 23]
    spanning = shown(temporal.retrieve(memory, "What happened until step 15?"))
    assert {15, 20, 21, 22} <= set(spanning)
    assert len(spanning) == 6


def test_a_preview_asks_nobody(settings: Settings, temporal: TemporalMemory) -> None:
    checker = AskingFor(25)
    checked = make(settings, checker)
    memory = checked.build(rooms(30))
    assert shown(checked.preview(memory, "step 3")) == [3]
    assert checked.preview_many(memory, ["step 3"]) == [checked.preview(memory, "step 3")]
    assert checker.candidates == []
    assert not checked.previews_evidence
    assert temporal.previews_evidence


class Failing(AskingFor):
    """A checker that knows nothing of one question."""

    def request(self, question: str, candidates: Sequence[Step], known: range) -> Sequence[int]:
        self.candidates.append(len(question))
        if "bell" in question:
            raise ModelError("HTTP 500")
        return self.steps


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_question_that_cannot_be_checked_has_no_evidence(settings: Settings, concurrency: int) -> None:
    limits, clip = settings.structures.temporal, settings.evidence.max_chars_per_step
    temporal = TemporalMemory(limits, settings.stores.bm25, clip, Checking(Failing(4), CountingLetters, concurrency))
    memory = temporal.build(rooms(30))
    with pytest.raises(ModelError, match="HTTP 500"):
        temporal.retrieve_many(memory, ["Where is the key?", "Where is the bell?"])
    assert shown(temporal.retrieve(memory, "Where is the key?")) == [4]


def test_a_checker_needs_the_vectors_of_its_own_embedder(settings: Settings, temporal: TemporalMemory) -> None:
    checked = make(settings, AskingFor(25))
    stored = checked.encode(checked.build(rooms(30)))
    assert shown(checked.retrieve(checked.decode(stored), "step 3")) == [3, 25]
    with pytest.raises(ArtifactError, match=r"'none'.*'letters'"):
        checked.decode(temporal.encode(temporal.build(rooms(30))))
    assert checked.build_identity() != temporal.build_identity()


def test_nothing_is_asked_about_an_empty_trajectory(settings: Settings) -> None:
    checker = AskingFor(1)
    temporal = make(settings, checker)
    assert temporal.retrieve(temporal.build(rooms(0)), "step 1").is_empty
    assert checker.known == range(0)


def test_settings_of_reading_leave_the_memory_alone(settings: Settings, temporal: TemporalMemory) -> None:
    assert make(settings, top_k=2).build_identity() == temporal.build_identity()
    assert make(settings, top_k=2).retrieve_identity() != temporal.retrieve_identity()
