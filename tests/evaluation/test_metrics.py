import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.datasets.locomo import QA_TYPES
from mesa_pipeline.evaluation.metrics import ama_f1, locomo_f1, token_f1


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("cat", "The cat.", 1.0),
        # 2 of 3 predicted and 2 of 2 wanted: P 2/3, R 1, F 0.8
        ("red cat sat", "a red cat", 0.8),
        # "word" counts once: P 1, R 1/2
        ("word", "word word", 2 / 3),
        ("foo bar", "foo_bar", 0.0),
        ("step 5", "Step-5", 1.0),
        ("ran", "running", 0.0),
        ("and", "the and", 1.0),
        ("", "", 1.0),
        ("the", "a an", 1.0),
        ("...", "", 1.0),
        ("x", "", 0.0),
        ("", "x", 0.0),
        ("\ud83d", "\ud83d", 1.0),
        ("ok \ud83d", "ok", 1.0),
        ("\x00ok", "ok", 1.0),
    ],
)
def test_ama_f1_by_hand(prediction: str, gold: str, expected: float) -> None:
    assert ama_f1(prediction, gold) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("prediction", "gold", "qa_type", "expected"),
    [
        # stems and the fillers a, an, the, and
        ("running", "the run", "single-hop", 1.0),
        ("cats and dogs", "dog cat", "temporal", 1.0),
        # punctuation is deleted, not parted: "step-5" is one word
        ("step 5", "step-5", "single-hop", 0.0),
        ("1,000", "1000", "single-hop", 1.0),
        ("May 7", "7 May 2023", "temporal", 0.8),
        # two wanted parts: 1 for "cats" and, best of "dogs" and "cats", 0 for "birds"
        ("dogs, cats", "cats, birds", "multi-hop", 0.5),
        ("cats birds", "cats, birds", "multi-hop", 2 / 3),
        ("cats", "cats", "multi-hop", 1.0),
        ("", "cats, birds", "multi-hop", 0.0),
        (",,,", ",", "multi-hop", 0.0),
        # only what stands before the semicolon
        ("yes", "Yes; she said so", "open-domain", 1.0),
        ("yes", "Yes; she said so", "single-hop", 0.4),
        ("yes", ";", "open-domain", 0.0),
        # two empty texts have no overlap here, unlike in AMA-Bench
        ("", "", "single-hop", 0.0),
        ("the", "and", None, 0.0),
        ("That is Not Mentioned.", "anything", "adversarial", 1.0),
        ("No information available", "", "adversarial", 1.0),
        ("Rome", "Rome", "adversarial", 0.0),
        ("ok \ud83d", "ok", "single-hop", 2 / 3),
    ],
)
def test_locomo_f1_by_hand(prediction: str, gold: str, qa_type: str | None, expected: float) -> None:
    assert locomo_f1(prediction, gold, qa_type) == pytest.approx(expected, abs=1e-12)


def test_a_dataset_is_scored_by_its_own_metric() -> None:
    assert token_f1("locomo", "running", "run", "single-hop") == 1.0
    for dataset in ("ama_bench", "synthetic", "traces"):
        assert token_f1(dataset, "running", "run", "recall") == 0.0
        assert token_f1(dataset, "cat", "The cat.") == 1.0


@given(prediction=st.text(), gold=st.text(), qa_type=st.sampled_from([None, *QA_TYPES.values()]))
def test_any_two_strings_have_a_score(prediction: str, gold: str, qa_type: str | None) -> None:
    for dataset in ("ama_bench", "locomo"):
        score = token_f1(dataset, prediction, gold, qa_type)
        assert 0.0 <= score <= 1.0
        assert score == token_f1(dataset, prediction, gold, qa_type)


@given(text=st.text(alphabet=st.characters(categories=["Ll", "Nd"]), min_size=1))
def test_a_text_agrees_with_itself(text: str) -> None:
    assert ama_f1(text, text) == 1.0


@pytest.mark.parametrize("piece", ["y", "a, ", "!", " and", "sses", "x y, "])
def test_a_million_characters_take_seconds_at_most(piece: str) -> None:
    text = piece * (1_000_000 // len(piece)) + "ing"
    gold = ", ".join(f"part {number}" for number in range(200))
    start = time.monotonic()
    for qa_type in QA_TYPES.values():
        locomo_f1(text, gold, qa_type)
    ama_f1(text, gold)
    assert time.monotonic() - start < 30


def test_the_official_functions_agree(dev_data: Path) -> None:
    lines = (dev_data / "metric_cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert len(cases) == 258
    for case in cases:
        dataset = case["suite"].removesuffix("_f1").replace("ama", "ama_bench")
        qa_type = QA_TYPES.get(case.get("category"))
        score = token_f1(dataset, case["prediction"], str(case["gold"]), qa_type)
        assert score == pytest.approx(case["expected"], abs=1e-9), case
