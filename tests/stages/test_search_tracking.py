"""What a tracker is told of a search."""

import pytest

from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.search.archive import Archive
from mesa_pipeline.search.loop import SearchPlan, SearchProgress
from mesa_pipeline.search.records import ArchiveEntry, ArmStatistics, Rejection
from mesa_pipeline.stages.search_tracking import SearchRecorder

PLAN = SearchPlan(seed=0, iterations=2, slots=2, proposer="template", directions=2)
ARMS = (ArmStatistics("lexical-rules", 2, 0.23, 0.05), ArmStatistics("analogy", 1, 0.21, 0.07))


class Recorded:
    """A search run that keeps what it is told."""

    def __init__(self):
        self.candidates = []
        self.steps = {}

    def candidate(self, candidate):
        self.candidates.append(candidate)

    def progress(self, step, metrics):
        self.steps[step] = metrics

    def freeze(self, policy, aliases=()):
        self.frozen = policy.metrics


def entry(id, objective, parents=()):
    slot, direction = (None, None) if id == "all" else (id[3:], "lexical-rules")
    worth = Evaluation(id, "executable", 10, objective + 0.003, 3000.0, 2.0, objective, 0)
    return ArchiveEntry(
        id, int(id[:2]) if id != "all" else 0, slot, direction, parents, "words tell", "code", worth, worth, "b" * 64
    )


@pytest.fixture
def watched():
    """Two iterations: one enters and one is invalid; one enters and one repeats."""
    first = Archive(
        (entry("all", 0.20), entry("01-exploit", 0.22)), (Rejection("01-explore", 1, "analogy", "it failed", None, "x"),)
    )
    second = Archive(
        (*first.entries, entry("02-repair", 0.24, ("01-exploit",))),
        (*first.rejections, Rejection("02-explore", 2, "analogy", "chooses exactly as all", "all", "y")),
    )
    run, told = Recorded(), []
    recorder = SearchRecorder(run, told.append)
    for iteration, archive in enumerate((first, second), 1):
        recorder.watch(SearchProgress(PLAN, iteration, archive, ARMS))
    assert [progress.iteration for progress in told] == [1, 2]
    return run


def test_each_candidate_is_told_once(watched):
    names = [candidate.name for candidate in watched.candidates]
    assert names == ["all", "01-exploit", "01-explore", "02-repair", "02-explore"]


def test_what_tells_candidates_apart_is_told_with_them(watched):
    by_name = {candidate.name: candidate for candidate in watched.candidates}
    mend = by_name["02-repair"]
    assert mend.metrics["objective"] == pytest.approx(24.0)
    assert mend.params["parents"] == "01-exploit"
    assert mend.params["slot"] == "repair"
    assert mend.source == "code"
    assert by_name["all"].params["direction"] == "none"


def test_a_refused_candidate_says_why_and_has_no_figures(watched):
    by_name = {candidate.name: candidate for candidate in watched.candidates}
    invalid, repeat = by_name["01-explore"], by_name["02-explore"]
    assert (invalid.valid, invalid.params["status"], invalid.params["reason"]) == (False, "invalid", "it failed")
    assert (repeat.valid, repeat.params["status"], repeat.params["duplicate_of"]) == (True, "duplicate", "all")
    assert invalid.metrics == repeat.metrics == {}


def test_the_search_has_a_history(watched):
    assert [watched.steps[step]["best/objective"] for step in (1, 2)] == pytest.approx([22.0, 24.0])
    counts = [watched.steps[2][f"candidates/{status}"] for status in ("evaluated", "duplicate", "invalid")]
    assert counts == [2.0, 1.0, 1.0]
    assert watched.steps[2]["pulls/lexical-rules"] == 2.0
    assert watched.steps[2]["value/analogy"] == pytest.approx(21.0)
