"""What the report is told of searches and ablations."""

import dataclasses

import pytest

from mesa_pipeline.config import Variation
from mesa_pipeline.reports.search_findings import INITIAL
from mesa_pipeline.stages.ablate import ablate
from mesa_pipeline.stages.optimize import optimize, read_archive, read_frozen, read_result
from mesa_pipeline.stages.report import gather, report
from mesa_pipeline.stages.report_search import ablation_contexts, search_findings
from mesa_pipeline.stages.test import test as run_test
from mesa_pipeline.tracking import NullTracker
from tests.pipeline import copy_of


@pytest.fixture(scope="module")
def found(finished):
    return search_findings(finished)


def test_every_candidate_is_told_once_in_the_order_tried(finished, found):
    for search in found:
        archive = read_archive(finished, search.seed)
        ids = [candidate.id for candidate in search.candidates]
        assert ids[0] == INITIAL
        assert sorted(ids) == sorted([entry.id for entry in archive.entries] + [r.id for r in archive.rejections])
        assert [candidate.iteration for candidate in search.candidates] == sorted(c.iteration for c in search.candidates)
    assert [search.seed for search in found] == list(finished.settings.splits.seeds)


def test_the_counts_are_those_of_the_search(finished, found):
    for search in found:
        result = read_result(finished, search.seed)
        counts = [search.count(status) for status in ("evaluated", "duplicate", "invalid")]
        assert counts == [result.evaluated, result.duplicates, result.invalid]
        assert sum(counts) == result.planned
        assert search.chosen == result.chosen


def test_the_code_shown_is_the_code_frozen(finished, found):
    for search in found:
        assert search.source == read_frozen(finished, search.seed).fitted.policy.spec()["source"]
        assert search.lineage()[-1].id == INITIAL


def test_the_price_searched_with_reads_off_a_best_candidate(found):
    for search in found:
        (own,) = [reading for reading in search.readings if reading.lambda_ == search.lambda_]
        best = max(candidate.worth.objective for candidate in search.archive)
        assert search.by_id[own.candidate].worth.objective == pytest.approx(best)
        assert search.by_id[own.candidate].on_front


def test_a_seed_without_a_search_is_left_out(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    (context.layout.policy(0) / "search.json").unlink()
    assert [search.seed for search in search_findings(context)] == [1]


def test_the_test_of_an_earlier_policy_is_not_reported_as_the_frozen_one_s(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    search = context.settings.search.model_copy(update={"lambda_": 0.01})
    context = dataclasses.replace(context, settings=context.settings.model_copy(update={"search": search}))
    optimize(context, 0, NullTracker())
    assert [test.seed for test in gather(context).tests] == [1]
    run_test(context, 0, NullTracker())
    assert [test.seed for test in gather(context).tests] == [0, 1]


def test_an_ablation_that_was_tested_is_gathered_and_makes_the_report_anew(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    settings = context.settings.model_copy(update={"ablations": (Variation(name="one", set=("search.max_structures=1",)),)})
    context = dataclasses.replace(context, settings=settings)
    assert ablation_contexts(context) == {}
    report(context)
    assert report(context).made == 0

    ablate(context, settings.ablations[0], 1, NullTracker())
    inputs = gather(context)
    assert {name: [test.seed for test in tests] for name, tests in inputs.ablations.items()} == {"one": [1]}
    assert report(context).made == 1
    assert "MESA, one" in (context.layout.report / "report.md").read_text()
