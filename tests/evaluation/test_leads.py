"""How far judges put the frozen policy before others, worked by hand."""

import numpy as np
import pytest

from mesa_pipeline.config import EvaluationSettings, Settings
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.evaluation.leads import lead_standings, leads
from mesa_pipeline.evaluation.panel import JudgedAnswer, JudgedSeed, Lead, panel_of
from mesa_pipeline.evaluation.statistics import paired_bootstrap

QUESTIONS = [("q1", "e1"), ("q2", "e1"), ("q3", "e2")]
ANSWERS = [JudgedAnswer(system, *question) for system in (FROZEN_ROW, "all") for question in QUESTIONS]


@pytest.fixture
def evaluation(settings: Settings) -> EvaluationSettings:
    return settings.evaluation.model_copy(update={"bootstrap_samples": 300})


def judged(seed: int, *made: Lead) -> JudgedSeed:
    return JudgedSeed(seed, {"a": "x"}, "policy", "outcomes", (), (), leads=made)


def test_differences_are_paired_by_question_where_both_have_a_verdict():
    found = leads(panel_of(("a", "b"), ANSWERS, [[1, 1, 0, 0, 1, 1], [1, None, 1, 0, 0, None]]))
    by_judge = {lead.judge: (lead.sums, lead.counts) for lead in found}
    assert {lead.system for lead in found} == {"all"}
    assert by_judge["a"] == ({"e1": 1.0, "e2": -1.0}, {"e1": 2, "e2": 1})
    assert by_judge["b"] == ({"e1": 1.0}, {"e1": 1})
    assert by_judge["majority"] == ({"e1": 1.0}, {"e1": 1}), "they differ on q2 and q3, or one is silent"


def test_the_interval_over_seeds_is_that_of_the_questions_themselves(evaluation: EvaluationSettings):
    seeds = [judged(0, Lead("a", "all", {"e1": 1.0, "e2": -1.0}, {"e1": 2, "e2": 1}))]
    seeds.append(judged(1, Lead("a", "all", {"e1": 1.0, "e3": 0.5}, {"e1": 1, "e3": 1})))
    (found,) = lead_standings(seeds, evaluation)
    differences = np.array([1.0, 0.0, -1.0, 1.0, 0.5])
    episodes = np.array(["e1", "e1", "e2", "e1", "e3"])
    expected = paired_bootstrap(differences, episodes, 300, evaluation.confidence, evaluation.bootstrap_seed)
    assert (found.judge, found.system) == ("a", "all")
    assert [found.difference.mean, found.difference.low, found.difference.high] == pytest.approx(
        [expected.mean, expected.low, expected.high]
    )
    assert found.difference.clusters == 3


def test_what_no_judge_said_of_both_has_no_lead(evaluation: EvaluationSettings):
    assert lead_standings([judged(0, Lead("a", "all", {}, {}))], evaluation) == ()
