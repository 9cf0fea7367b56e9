"""Glimpses of evidence: short, and priced as the structure read alone is."""

import pytest

from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.reading.previews import preview
from mesa_pipeline.stages.storage import question_infos, read_manifest, read_outcomes
from mesa_pipeline.subsets import STRUCTURE_CODES, encode
from mesa_pipeline.types import Evidence, EvidenceItem


class Words:
    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


@pytest.fixture
def limits(settings):
    return settings.previews.model_copy(update={"max_chars": 10, "max_scores": 2, "max_steps": 3})


def item(text: str, *steps: int, score: float | None = None) -> EvidenceItem:
    return EvidenceItem(text=text, steps=steps, score=score)


def test_nothing_found_is_an_empty_glimpse(limits):
    found = preview(Evidence("G"), limits, Words())
    assert (found.text, found.n_items, found.tokens, found.top_score, found.scores, found.step_ids) == ("", 0, 0, None, (), ())


def test_a_glimpse_by_hand(limits):
    evidence = Evidence("V", (item("one two", 7, 3, score=0.2), item("three", 3, score=0.9), item("four", 5, 9, score=0.1)))
    found = preview(evidence, limits, Words())
    assert found.text == "one two\nth"
    assert found.n_items == 3
    assert (found.top_score, found.scores) == (0.9, (0.2, 0.9))
    assert found.step_ids == (3, 5, 7)


def test_structures_that_do_not_score_have_no_scores(limits):
    found = preview(Evidence("S", (item("all of it", 1),)), limits, Words())
    assert (found.top_score, found.scores) == (None, ())


def test_some_items_without_a_score_do_not_hide_the_others(limits):
    found = preview(Evidence("T", (item("a"), item("b", score=-0.5), item("c"))), limits, Words())
    assert (found.top_score, found.scores) == (-0.5, (-0.5,))


@pytest.mark.parametrize("texts", [["x" * 8, "y"], ["x" * 10, "y"], ["x" * 11], ["", "", "abc"], ["\ud800\x00" * 9], [""]])
def test_the_text_is_the_beginning_of_the_items_joined(texts, limits):
    found = preview(Evidence("R", tuple(item(text) for text in texts)), limits, Words())
    assert found.text == "\n".join(texts)[:10]


def test_tokens_are_those_of_the_structure_read_alone(limits):
    evidence = Evidence("R", (item("one two three", 1), item("four " * 50, 2)))
    alone = Composer({"R": evidence}, Words()).compose(encode(["R"]))
    assert preview(evidence, limits, Words()).tokens == alone.tokens > 50


def test_previews_of_a_workspace_cost_what_the_outcome_table_says(finished):
    """Every question of the small pipeline: a preview's tokens are those of its structure in the table."""
    compared = 0
    for entry in read_manifest(finished.layout).episodes:
        outcomes = {(o.question_id, o.subset): o.tokens for o in read_outcomes(finished.layout, entry.key)}
        for question in question_infos(finished.layout, entry):
            assert set(question.previews) == set(STRUCTURE_CODES)
            for code, glimpse in question.previews.items():
                assert glimpse.tokens == outcomes[question.id, encode([code])]
                assert len(glimpse.text) <= finished.settings.previews.max_chars
                compared += glimpse.tokens > 0
    assert compared > 100
