"""The paper's tables over a small workspace in which two systems were run, one of them on part of the questions."""

import csv
import dataclasses
import json
import re
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.artifacts.layout import exclusive
from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.evaluation.metrics import token_f1
from mesa_pipeline.stages.baseline_report import baseline_report
from mesa_pipeline.stages.baselines import read_answers, run_baseline
from mesa_pipeline.stages.compare_systems import compared_systems
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.report import gather, report
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.storage import read_manifest, read_questions
from tests.pipeline import copy_of


@pytest.fixture(scope="module")
def compared(finished: StageContext, tmp_path_factory: pytest.TempPathFactory) -> StageContext:
    """BM25 on everything, flat dense without the answers of one test episode; and the report on both."""
    context = copy_of(finished, tmp_path_factory.mktemp("compared"))
    for code in ("bm25", "flat_dense"):
        run_baseline(context, code)
    lost = read_manifest(context.layout).entries(read_split(context, 0).test)[0]
    with exclusive(context.layout):
        context.layout.answers("flat_dense", lost.key).unlink()
    done = baseline_report(context)
    assert (done.made, done.failed) == (1, ())
    return context


def table(context: StageContext, name: str) -> dict[str, dict[str, str]]:
    lines = csv.DictReader((context.layout.comparison / "tables" / f"{name}.csv").read_text().splitlines())
    return {line["System"]: line for line in lines}


def test_the_main_table_has_every_system_and_says_which_were_not_run(compared: StageContext) -> None:
    rows = table(compared, "table-1-capabilities")
    assert list(rows)[: len(BASELINES)] == [baseline.title for baseline in BASELINES.values()]
    assert list(rows)[-1] == "MESA"
    assert rows["MemGPT"]["Overall (x100)"] == "not run"
    assert int(rows[BASELINES["flat_dense"].title]["Not asked (questions)"]) > 0
    assert rows["BM25"]["Not asked (questions)"] == "0"
    assert " to " in rows["BM25"]["Interval (95%)"]


def test_a_score_is_the_mean_over_seeds_of_the_mean_over_test_questions(compared: StageContext) -> None:
    outcomes = read_answers(compared, "bm25")
    manifest = read_manifest(compared.layout)
    means = []
    for seed in compared.settings.splits.seeds:
        entries = manifest.entries(read_split(compared, seed).test)
        scores = [outcomes[q.id].score or 0.0 for e in entries for q in read_questions(compared.layout, e.key)]
        means.append(sum(scores) / len(scores))
    measured = json.loads((compared.layout.comparison / "standings.json").read_text())
    (found,) = [standing for standing in measured["overall"] if standing["code"] == "bm25"]
    assert found["score"][0] == pytest.approx(sum(means) / len(means))
    assert found["score"][1] == pytest.approx(abs(means[0] - means[1]) / 2**0.5)


def test_f1_is_taken_from_the_stored_answers(compared: StageContext) -> None:
    inputs = gather(compared)
    systems = compared_systems(compared, ["bm25"], inputs.tests, inputs.matrix)
    answers = read_answers(compared, "bm25")
    questions = {q.id: q for e in read_manifest(compared.layout).episodes for q in read_questions(compared.layout, e.key)}
    part, asked = systems.f1.held_out[0], systems.f1.systems[0].seeds[0]
    expected = [token_f1("synthetic", answers[q.id].answer, questions[q.id].answer or "") for q in part.questions]
    assert asked.scores.tolist() == pytest.approx(expected)
    assert systems.f1.mesa.code == FROZEN_ROW


def test_the_page_holds_each_of_the_papers_tables_and_no_figures_of_other_data(compared: StageContext) -> None:
    page = (compared.layout.comparison / "baselines.html").read_text()
    for title in ("Table 1", "Table 3", "Table 4", "Table 5", "Table 8", "Table 9", "Figure 2a", "Figure 4", "Figure 5"):
        assert title in page
    assert "<script src" not in page
    assert len(re.findall(r"<svg ", page)) >= 3
    assert not any("Paper" in title for title in table(compared, "table-1-capabilities")["MESA"])  # of other data
    builds = table(compared, "table-8-construction")
    assert float(builds["MESA, five structures one after another"]["Mean (s)"]) > 0


def test_nothing_is_written_twice_and_the_bytes_are_those_of_the_inputs(compared: StageContext, tmp_path: Path) -> None:
    again = baseline_report(compared)
    assert (again.made, again.kept) == (0, 1)
    before = {path.name: path.read_bytes() for path in sorted(compared.layout.comparison.rglob("*")) if path.is_file()}
    other = copy_of(compared, tmp_path)
    (other.layout.comparison / "baselines.html").unlink()
    assert baseline_report(other).made == 1
    after = {path.name: path.read_bytes() for path in sorted(other.layout.comparison.rglob("*")) if path.is_file()}
    assert after == before


def test_the_datasets_own_report_shows_the_main_table_once_systems_were_run(
    compared: StageContext, finished: StageContext
) -> None:
    assert report(compared).made == 1
    assert 'id="table-table-1-capabilities"' in (compared.layout.report / "report.html").read_text()
    assert "table-1-capabilities" not in (finished.layout.report / "report.html").read_text()


def test_without_any_system_the_page_says_so(finished: StageContext, tmp_path: Path) -> None:
    context = copy_of(finished, tmp_path)
    done = baseline_report(context)
    assert "MESA stands alone" in str(done.facts["verdict"])


def test_without_a_test_there_is_nothing_to_compare(prepared: StageContext, finished: StageContext, tmp_path: Path) -> None:
    context = copy_of(finished, tmp_path)
    for seed in context.settings.splits.seeds:
        context.layout.test(seed).unlink()
    with pytest.raises(ArtifactError, match="mesa test"):
        baseline_report(context)
    empty = dataclasses.replace(context, layout=Layout(tmp_path / "empty", "synthetic"))
    with pytest.raises(ArtifactError, match="mesa ingest"):
        baseline_report(empty)
