"""Composing the evidence of any subset: order, references instead of repetition, exact token counts."""

from pathlib import Path

import pytest

from mesa_pipeline import subsets
from mesa_pipeline.config import Settings
from mesa_pipeline.datasets import ama_bench
from mesa_pipeline.llm.tokens import QwenTokenCounter
from mesa_pipeline.reading.compose import HEADINGS, Composer, render_section
from mesa_pipeline.structures.raw import RawMemory
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.structures.temporal import TemporalMemory
from mesa_pipeline.types import ComposedEvidence, Evidence, EvidenceItem, Step


class CharacterCounter:
    """One token a character; remembers what it was asked."""

    name = "characters"

    def __init__(self) -> None:
        self.counted: list[str] = []

    def count(self, text: str) -> int:
        self.counted.append(text)
        return len(text)


def record(*steps: int) -> EvidenceItem:
    return EvidenceItem("\n\n".join(f"record {step}" for step in steps), steps, is_record=True)


EVIDENCE = {
    "S": Evidence("S", (EvidenceItem("all in short", (1, 2, 3)),)),
    "T": Evidence("T", (EvidenceItem("actions of 1, 2", (1, 2)), record(2), record(9))),
    "G": Evidence("G", (EvidenceItem("key opens door", (2,)),)),
    "V": Evidence("V", (record(3), record(9))),
    "R": Evidence("R", (record(1, 2, 3),), truncated=True),
}


def compose(*codes: str) -> ComposedEvidence:
    return Composer(EVIDENCE, CharacterCounter()).compose(subsets.encode(codes))


def test_sections_stand_in_the_fixed_order() -> None:
    composed = compose("G", "T", "V", "R", "S")
    assert [section.structure for section in composed.sections] == list("SRVTG")
    assert [composed.text.index(HEADINGS[code]) for code in "SRVTG"] == sorted(
        composed.text.index(h) for h in HEADINGS.values()
    )


def test_alone_every_structure_shows_all_its_items() -> None:
    for code, evidence in EVIDENCE.items():
        assert compose(code).text == render_section(evidence)
        assert all(item.text in compose(code).text for item in evidence.items)


def test_records_shown_before_are_referred_to_and_not_repeated() -> None:
    text = compose("R", "V", "T").text
    assert [text.count(f"record {step}") for step in (1, 2, 3, 9)] == [1, 1, 1, 1]
    vector, temporal = text.split(HEADINGS["V"])[1].split(HEADINGS["T"])
    assert "Also relevant, shown above: step 3" in vector
    assert "record 9" in vector
    assert "Also relevant, shown above: step 2, step 9" in temporal
    assert "actions of 1, 2" in temporal


def test_what_is_no_record_stands_for_no_record() -> None:
    assert "record 2" in compose("S", "T").text
    assert "key opens door" in compose("S", "R", "V", "T", "G").text


def test_a_record_is_repeated_when_only_a_part_of_it_was_shown() -> None:
    evidence = {"R": Evidence("R", (record(1),)), "V": Evidence("V", (record(1, 2),))}
    composed = Composer(evidence, CharacterCounter()).compose(subsets.encode("RV"))
    assert composed.sections[1].text == HEADINGS["V"] + "\n\nrecord 1\n\nrecord 2\n\n"


def test_structures_without_evidence_have_no_section() -> None:
    evidence = {"S": Evidence("S"), "T": EVIDENCE["T"]}
    composer = Composer(evidence, CharacterCounter())
    assert [section.structure for section in composer.compose(subsets.FULL_SUBSET).sections] == ["T"]
    assert composer.compose(subsets.encode("SV")) == ComposedEvidence()
    assert composer.compose(subsets.encode("S")).tokens == 0


def test_truncation_is_known_by_section() -> None:
    assert [section.truncated for section in compose("S", "R").sections] == [False, True]


def test_each_distinct_section_is_counted_once_for_all_subsets() -> None:
    counter = CharacterCounter()
    composer = Composer(EVIDENCE, counter)
    for subset in subsets.ALL_SUBSETS:
        composed = composer.compose(subset)
        assert composed.tokens == len(composed.text)
    assert len(counter.counted) == len(set(counter.counted)) < 12


def test_hostile_text_passes_through_unchanged() -> None:
    hostile = "\x00 \ud800 \u202e {0} %s $x ## Steps by time"
    evidence = {"T": Evidence("T", (EvidenceItem(hostile, (0,), is_record=True),))}
    composed = Composer(evidence, CharacterCounter()).compose(subsets.encode("T"))
    assert hostile in composed.text


@pytest.mark.parametrize("ending", ["x", "1", "!", "\n\n\n", "\n \n", "'", "שלום", "\t", "\x00", "#", "##", " #"])
def test_token_counts_add_up_whatever_a_section_ends_with(settings: Settings, ending: str) -> None:
    counter = QwenTokenCounter(settings.llm.tokenizer)
    evidence = {code: Evidence(code, (EvidenceItem("body" + ending, (1,)),)) for code in subsets.COMPOSE_ORDER}
    composed = Composer(evidence, counter).compose(subsets.FULL_SUBSET)
    assert composed.tokens == counter.count(composed.text)


def test_token_counts_add_up_on_trajectories(settings: Settings, dev_data: Path) -> None:
    counter = QwenTokenCounter(settings.llm.tokenizer)
    raw = RawMemory(settings.structures.raw, settings.stores.bm25, 2000)
    temporal = TemporalMemory(settings.structures.temporal, settings.stores.bm25, 2000)
    episodes = ama_bench.load(dev_data / "ama_bench" / "open_end_qa_set.jsonl", settings.datasets, False).episodes
    for episode in episodes[::8]:
        built = raw.build(episode.trajectory), temporal.build(episode.trajectory)
        for question in episode.questions[:3]:
            evidence = {
                "S": Evidence("S", (EvidenceItem(episode.task_type),)),
                "R": raw.retrieve(built[0], question.text),
                "T": temporal.retrieve(built[1], question.text),
                "G": Evidence("G", (EvidenceItem(question.text),)),
            }
            composed = Composer(evidence, counter).compose(subsets.FULL_SUBSET)
            assert composed.tokens == counter.count(composed.text)


def test_a_record_of_t_is_a_record_of_r(settings: Settings) -> None:
    text = serialize_step(Step(4, "look", "a key"), settings.evidence.max_chars_per_step).text
    evidence = {
        "R": Evidence("R", (EvidenceItem(text, (4,), is_record=True),)),
        "T": Evidence("T", (EvidenceItem(text, (4,), is_record=True),)),
    }
    composed = Composer(evidence, CharacterCounter()).compose(subsets.encode("RT"))
    assert composed.text.count("a key") == 1
