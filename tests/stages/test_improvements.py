"""What a search's improvements score on test: found once all is decided, and nowhere that a search reads."""

import dataclasses
from pathlib import Path

import pytest

from mesa_pipeline.errors import PolicyError
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.stages import improvements
from mesa_pipeline.stages.baseline_report import baseline_report
from mesa_pipeline.stages.improvements import improvement_scores
from mesa_pipeline.stages.optimize import is_optimized
from mesa_pipeline.stages.report import gather
from tests.pipeline import copy_of


@pytest.fixture(scope="module")
def gathered(finished):
    return gather(finished)


@pytest.fixture(scope="module")
def searched(gathered):
    """The search of those that improved most often."""
    return max(gathered.searches, key=lambda search: len(search.improvements))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_last_improvement_scores_on_test_what_the_frozen_policy_does(finished, gathered, searched):
    found = improvement_scores(finished, searched, gathered.tests, gathered.matrix)
    assert [tested.id for tested in found] == list(searched.improvements)
    assert searched.improvements[-1] == searched.chosen
    frozen = searched.test_among(gathered.tests).row(FROZEN_ROW)
    assert found[-1].score.mean == pytest.approx(frozen.evaluation.score)
    assert found[-1].versus_all == frozen.versus_all
    assert len(found) > 1
    assert found[0].versus_all.mean == 0.0, "reading all five"


def test_nothing_is_opened_before_the_frozen_policy_was_tested(finished, gathered, searched, monkeypatch):
    monkeypatch.setattr(improvements, "read_split", lambda context, seed: pytest.fail("opened"))
    assert improvement_scores(finished, searched, (), gathered.matrix) == ()
    another = [
        dataclasses.replace(test, receipt=dataclasses.replace(test.receipt, manifest_sha256="x")) for test in gathered.tests
    ]
    assert improvement_scores(finished, searched, another, gathered.matrix) == ()


def test_what_a_search_reads_is_left_as_it_was(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    seed = context.settings.splits.seeds[0]
    before = contents(context.layout.policy(seed))
    assert baseline_report(context).made == 1
    assert contents(context.layout.policy(seed)) == before
    assert is_optimized(context, seed)
    assert "all" in (context.layout.comparison / "tables" / "figure-5b-accepted.csv").read_text()


def test_a_candidate_that_fails_on_a_new_question_is_left_out(finished, gathered, searched, monkeypatch, caplog):
    whole = improvements.candidate_score

    def failing(id, fitted, test, settings):
        if id == "all":
            raise PolicyError("it failed on 1 of 9 questions")
        return whole(id, fitted, test, settings)

    monkeypatch.setattr(improvements, "candidate_score", failing)
    found = improvement_scores(finished, searched, gathered.tests, gathered.matrix)
    assert [tested.id for tested in found] == list(searched.improvements[1:])
    assert "all of seed" in caplog.text
