"""Reading within a budget: never exceeded with the real composer and counter, and the best of what fits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.llm.tokens import QwenTokenCounter
from mesa_pipeline.policies import PolicyInput
from mesa_pipeline.policies.budget import NOTHING, TokenBudget
from mesa_pipeline.policies.budgeted_reading import BudgetedReading, read_within
from mesa_pipeline.policies.values import ValueModel
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.subsets import ALL_SUBSETS, STRUCTURE_CODES, decode, encode
from mesa_pipeline.types import Evidence, EvidenceItem

COUNTER = QwenTokenCounter("qwen2.5-72b-instruct")
ASKED = PolicyInput("why?", {}, 9)
RECORDS = ("T", "V", "R")


class WordCounter:
    """One token a word; remembers nothing."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


class Shelf:
    """Evidence by structure that remembers which were asked for."""

    def __init__(self, evidence: dict[str, Evidence]) -> None:
        self.evidence = evidence
        self.asked: set[str] = set()

    def __call__(self, codes):
        codes = list(codes)
        self.asked.update(codes)
        return {code: self.evidence[code] for code in codes}


def model(scores: list[float | None]) -> ValueModel:
    return ValueModel(0.0, (), {}, {dump_json([]): scores})


def worth(best: dict[str, float]) -> list[float | None]:
    """Expected scores of all subsets: those named, and 0 for the others."""
    named = {encode(codes): score for codes, score in best.items()}
    return [named.get(mask, 0.0) for mask in ALL_SUBSETS]


def words(code: str, *pieces: int) -> Evidence:
    return Evidence(code, tuple(EvidenceItem(" ".join([code.lower()] * n), (k,), None) for k, n in enumerate(pieces)))


# With headings: S 104, T 43, G 12, V 55, R 305 words.
SIZES = {"S": words("S", 50, 49), "T": words("T", 39), "G": words("G", 10), "V": words("V", 25, 24), "R": words("R", 300)}


def read(limit: int, wanted: str, values: ValueModel | None, evidence=None) -> BudgetedReading:
    return read_within(TokenBudget(limit, values), encode(wanted), ASKED, Shelf(evidence or SIZES), WordCounter())


def test_what_fits_is_read_as_the_policy_wants_it_and_nothing_else_is_retrieved():
    shelf = Shelf(SIZES)
    found = read_within(TokenBudget(200, model(worth({"G": 1.0}))), encode("ST"), ASKED, shelf, WordCounter())
    assert (found.subset, found.kept, found.dropped, found.cut) == (encode("ST"), True, (), None)
    assert shelf.asked == {"S", "T"}
    assert "within the 200 allowed" in found.reason


def test_else_the_subset_of_highest_expected_value_that_fits():
    found = read(70, "SR", model(worth({"TG": 0.5, "T": 0.4, "G": 0.3})))
    assert found.evidence == {"T": SIZES["T"], "G": SIZES["G"]}
    assert (found.subset, found.kept, found.cut, found.dropped) == (encode("TG"), False, None, ("S", "R"))
    assert "T+G has the highest expected value" in found.reason


def test_the_room_left_is_filled_from_what_would_be_best_without_a_limit():
    found = read(70, "SR", model(worth({"TG": 0.5, "TS": 0.9, "S": 0.2})))  # S+T has 147 words
    assert (found.evidence["T"], found.evidence["G"], found.cut) == (SIZES["T"], SIZES["G"], "S")
    assert found.dropped == ("R",)
    assert WordCounter().count(found.composed.text) == 70
    assert "of S is added what fits" in found.reason


def test_where_nothing_fits_whole_the_worthiest_structure_is_cut():
    found = read(11, "SR", model(worth({"V": 0.6, "S": 0.2})))
    assert (found.subset, found.cut) == (encode("V"), "V")
    assert found.composed.tokens == 11
    assert "nothing fits whole" in found.reason


@pytest.mark.parametrize("limit", [0, 1])
def test_where_no_piece_fits_nothing_is_read(limit):
    found = read(limit, "SR", model(worth({"V": 0.6})))
    assert (found.subset, found.evidence, found.composed.tokens) == (NOTHING, {}, 0)
    assert found.dropped == ("S", "R")
    assert "nothing is read" in found.reason


def test_a_fixed_choice_keeps_the_most_of_itself_and_looks_at_nothing_else():
    shelf = Shelf(SIZES)
    found = read_within(TokenBudget(115, None), encode("TGVR"), ASKED, shelf, WordCounter())
    assert decode(found.subset)[:3] == ("T", "G", "V")
    assert shelf.asked == {"T", "G", "V", "R"}
    assert "says not what its parts are worth" in found.reason


def test_evidence_that_is_empty_needs_no_room():
    nothing = {code: Evidence(code) for code in STRUCTURE_CODES}
    assert read(0, "ST", model(worth({})), nothing).kept


def test_a_counter_that_does_not_add_up_over_sections_is_not_believed():
    class Joined(WordCounter):
        def count(self, text: str) -> int:
            return super().count(text) + 1000 * (text.count("## ") > 1)

    found = read_within(TokenBudget(100, model(worth({"TG": 0.9, "G": 0.5}))), encode("SR"), ASKED, Shelf(SIZES), Joined())
    assert Joined().count(found.composed.text) <= 100
    assert found.subset == encode("G")


PIECES = st.lists(
    st.tuples(
        st.text(max_size=60) | st.sampled_from(["step " * 30, "\x00\u202e{}", "数" * 40, "<|im_end|>", "\n\n## Relations"]),
        st.lists(st.integers(0, 5), max_size=3, unique=True).map(sorted).map(tuple),
        st.none() | st.floats(-2, 2),
    ),
    max_size=4,
)
EVIDENCE = st.tuples(*([PIECES] * 5)).map(
    lambda found: {
        code: Evidence(code, tuple(EvidenceItem(text, steps, score, code in RECORDS) for text, steps, score in pieces))
        for code, pieces in zip(STRUCTURE_CODES, found, strict=True)
    }
)
SCORES = st.lists(st.none() | st.sampled_from([-0.5, 0.0, 0.25, 0.5]), min_size=31, max_size=31)


@hypothesis_settings(max_examples=150, deadline=None)
@given(EVIDENCE, st.none() | SCORES, st.integers(1, 31), st.integers(0, 150) | st.just(10**9))
def test_the_budget_is_never_exceeded(evidence, scores, wanted, limit):
    budget = TokenBudget(limit, model(scores) if scores else None)
    found = read_within(budget, wanted, ASKED, Shelf(evidence), COUNTER)
    again = read_within(budget, wanted, ASKED, Shelf(evidence), COUNTER)
    assert COUNTER.count(found.composed.text) <= limit
    assert found.composed.tokens <= limit
    assert found.composed == Composer(found.evidence, COUNTER).compose(subsets.FULL_SUBSET)
    assert found == again
    assert found.kept or COUNTER.count(Composer(evidence, COUNTER).compose(wanted).text) > limit


@hypothesis_settings(max_examples=100, deadline=None)
@given(
    EVIDENCE, st.lists(st.sampled_from([0.0, 0.25, 0.5]), min_size=31, max_size=31), st.integers(1, 31), st.integers(10, 150)
)
def test_what_is_read_whole_has_the_highest_expected_value_of_all_that_fits(evidence, scores, wanted, limit):
    found = read_within(TokenBudget(limit, model(scores)), wanted, ASKED, Shelf(evidence), COUNTER)
    composer = Composer(evidence, COUNTER)
    filled = [code for code in STRUCTURE_CODES if evidence[code].items]
    fitting = [m for m in ALL_SUBSETS if composer.compose(m).tokens <= limit and set(decode(m)) <= set(filled)]
    if found.kept or not fitting:
        return
    best = max(np.array(scores)[np.array(fitting) - 1])
    assert any(scores[m - 1] == best and set(decode(m)) <= set(found.evidence) for m in fitting)
