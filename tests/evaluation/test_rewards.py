from pathlib import Path

import pytest

from mesa_pipeline.config import Settings
from mesa_pipeline.datasets import locomo
from mesa_pipeline.errors import DataError
from mesa_pipeline.evaluation.rewards import TokenF1
from mesa_pipeline.types import Question


def test_the_name_says_whose_metric_it_is():
    assert TokenF1("locomo").name != TokenF1("ama_bench").name


def test_a_question_is_scored_by_its_datasets_metric():
    question = Question("q#0", "What did she do?", "single-hop", "running")
    assert TokenF1("locomo").judge(question, "", "run").score == 1.0
    assert TokenF1("ama_bench").judge(question, "", "run").score == 0.0


@pytest.mark.parametrize("qa_type", [None, "recall", "adversarial"])
def test_a_question_without_reference_is_refused_and_not_scored_0(qa_type: str | None):
    with pytest.raises(DataError, match="'q#7' has no reference answer"):
        TokenF1("locomo").judge(Question("q#7", "Why?", qa_type), "", "because")


@pytest.mark.parametrize("constant", ["", "Not mentioned in the conversation", "No information available"])
def test_always_answering_that_nothing_is_known_earns_next_to_nothing(dev_data: Path, settings: Settings, constant: str):
    """Adversarial questions, which such an answer would win, are excluded by default."""
    episodes = locomo.load(dev_data / "locomo" / "locomo5.json", settings.datasets, False).episodes
    reward = TokenF1("locomo")
    scores = [reward.judge(question, "", constant).score for episode in episodes for question in episode.questions]
    assert len(scores) == 779
    assert sum(scores) / len(scores) < 0.02
