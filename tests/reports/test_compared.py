"""The paper's tables and figures over made-up inputs; the arithmetic is tested where it is done."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.config import Settings
from mesa_pipeline.evaluation.candidates import CandidateScore
from mesa_pipeline.evaluation.compared_systems import Answers, compare_systems
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.evaluation.ladder import ladder
from mesa_pipeline.evaluation.panel import Agreement, JudgedSeed, JudgeRow
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.evaluation.system_costs import PARALLEL_ROW, mean_cost
from mesa_pipeline.evaluation.systems import SystemOutcome
from mesa_pipeline.llm.metering import Cost
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.reports.compared import REPORTS, ComparedInputs, write_compared
from mesa_pipeline.reports.compared.systems import capabilities_table, domains_table, locomo_splits_table, locomo_table
from mesa_pipeline.reports.document import Figure, Table
from mesa_pipeline.reports.inputs import ComparedSystems, ReportInputs
from mesa_pipeline.reports.paper_figures import FIGURES, MARGINS, MODELS, OVERALL
from mesa_pipeline.subsets import STRUCTURE_CODES
from tests.reports.test_search import search

ABLATED_ROWS = {"route to one", "without priors", "without UCB"}
TESTED_ROWS = {*STRUCTURE_CODES, "random", "all", FROZEN_ROW, PARALLEL_ROW, "LLM zero-shot", *ABLATED_ROWS}
HOSTILE = "\ud800 \u202e<script>|`x`\x00{{ 1 }}"


def answers(matrix: OutcomeMatrix, code: str, share: float, title: str | None = None) -> Answers:
    """A system that scores ``share`` of what all five structures score, and asks three times a question."""
    outcomes = {
        question.id: SystemOutcome(question.id, share * float(score), 900, "a", Cost(calls=3, prompt_tokens=4000))
        for question, score in zip(matrix.questions, matrix.scores[:, -1], strict=True)
    }
    return Answers(code, title or BASELINES[code].title, outcomes)


def compared(inputs: ReportInputs, settings: Settings, dataset: str = "ama_bench", title: str | None = None) -> ComparedInputs:
    systems = [answers(inputs.matrix, "bm25", 0.9, title), answers(inputs.matrix, "memgpt", 0.8)]
    found = compare_systems(inputs.tests, inputs.matrix, systems)
    evaluation = settings.evaluation.model_copy(update={"bootstrap_samples": 50})
    timed = [Cost(seconds=seconds) for seconds in (0.5, 1.5, 4.0)]
    builds = (
        mean_cost("bm25", "BM25", timed, evaluation),
        mean_cost("memgpt", "MemGPT", [], evaluation),
        mean_cost("mem0", "Mem0", timed[:1], evaluation),
        mean_cost(PARALLEL_ROW, "side by side", timed, evaluation),
    )
    report = dataclasses.replace(inputs, dataset=dataset, evaluation=evaluation)
    return ComparedInputs(report, ComparedSystems(found, found, builds))


@pytest.fixture(scope="module")
def made(inputs: ReportInputs, settings: Settings) -> ComparedInputs:
    return compared(inputs, settings)


def cells(table: Table) -> dict[str, dict[str, str]]:
    titles = [column.title for column in table.columns]
    return {row.cells[0].text: dict(zip(titles, (cell.text for cell in row.cells), strict=True)) for row in table.rows}


def test_rows_stand_in_the_papers_order_with_mesa_last(made: ComparedInputs) -> None:
    (table,) = capabilities_table(made)
    rows = cells(table)
    assert list(rows)[: len(BASELINES)] == [baseline.title for baseline in BASELINES.values()]
    assert list(rows)[-1] == "MESA"
    assert [row.highlighted for row in table.rows].count(True) == 1
    assert rows["A-Mem"]["Overall"] == "not run"
    assert rows["MemGPT"]["Query tokens"].startswith("4,900")
    assert rows["MemGPT"]["Calls before the answer"].startswith("3.00")


def test_the_papers_figures_have_columns_of_their_own(made: ComparedInputs) -> None:
    (table,) = capabilities_table(made)
    assert [column.title for column in table.columns if "Paper" in column.title] == ["Paper", "Paper, causal"]
    assert (cells(table)["MESA"]["Paper"], cells(table)["BM25"]["Paper"]) == ("65.1 ± 0.8", "–")
    assert "Qwen3-32B" in table.caption
    _, margins = domains_table(made)
    assert cells(margins)["SOFTWARE"]["Paper"] == "+15.5"
    assert cells(margins)["Game"]["Paper"] == "−0.7"
    assert cells(margins)["Game"]["Strongest other system"] == "BM25"
    for row in cells(margins).values():
        low, high = (float(end.replace("−", "-")) for end in row["Interval"].split(" to "))
        assert low <= float(row["MESA minus it"].replace("−", "-")) <= high


def test_the_papers_selections_stand_beside_ours_with_what_they_read(made: ComparedInputs) -> None:
    rungs = ladder(made.report.tests, {}, made.report.matrix, made.report.evaluation)
    climbed = dataclasses.replace(made, report=dataclasses.replace(made.report, ladder=rungs))
    (table,) = REPORTS["table-3"].make(climbed)
    assert isinstance(table, Table)
    papers = ("Paper", "Paper, # structures", "Paper, evidence tokens")
    rows = {row["Selection"]: tuple(row[title] for title in papers) for row in cells(table).values()}
    assert rows["MESA"] == ("65.1 ± 0.8", "2.8", "11,000")
    assert rows["random"] == ("56.7 ± 1.2", "2.5", "11,400")
    assert rows["G graph"] == ("32.7 ± 1.2", "1.0", "800")
    assert rows["oracle"] == ("–", "–", "–")


def test_construction_has_an_interval_and_the_papers_seconds(made: ComparedInputs) -> None:
    (table,) = REPORTS["table-8"].make(made)
    assert isinstance(table, Table)
    rows = cells(table)
    low, high = map(float, rows["BM25"]["Interval"].split(" to "))
    assert 0.5 <= low < 2.0 < high <= 4.0
    assert rows["Mem0"]["Interval"] == "–", "one trajectory tells of no spread"
    assert {name: row["Paper"] for name, row in rows.items()} == {"BM25": "–", "Mem0": "179.9", "side by side": "38.2"}


@pytest.fixture
def searched(inputs: ReportInputs, settings: Settings) -> ComparedInputs:
    """A search in which a fresh idea and its mend were the best so far, both better on test than all five."""
    found = dataclasses.replace(search(0), improvements=("all", "01-explore", "02-repair"))
    tested = tuple(
        CandidateScore(
            id, Interval(score, score - 0.03, score + 0.03, 0.95, 9), Interval(gain, gain - 0.01, gain + 0.01, 0.95, 9)
        )
        for id, score, gain in (("all", 0.31, 0.0), ("01-explore", 0.325, 0.015), ("02-repair", 0.3, -0.01))
    )
    report = dataclasses.replace(inputs, searches=(found, search(1)))
    return dataclasses.replace(compared(report, settings), improvements={0: tested})


def test_a_search_is_drawn_with_what_its_policy_scores_on_test(searched: ComparedInputs) -> None:
    elsewhere = dataclasses.replace(searched, report=dataclasses.replace(searched.report, dataset="synthetic"))
    (ours,), (theirs,) = (REPORTS["figure-5a"].make(found) for found in (elsewhere, searched))
    frozen = searched.report.tests[0].row(FROZEN_ROW)
    assert isinstance(ours, Figure)
    assert isinstance(theirs, Figure)
    assert f"the frozen policy scores {100 * frozen.evaluation.score:.2f}, " in ours.caption
    assert "95% interval" in ours.caption
    assert ("65.67" in ours.caption, "65.67" in theirs.caption) == (False, True)
    assert "on test of those that were the best so far: all 31.0, 01-explore 32.5, 02-repair 30.0" in ours.description
    assert [label in ours.svg for label in ("test score x100", "minus all five")] == [True, True]


def test_without_scores_on_test_only_the_search_is_drawn(searched: ComparedInputs) -> None:
    bare = dataclasses.replace(searched, improvements={})
    (drawn,), (table,) = REPORTS["figure-5a"].make(bare), REPORTS["figure-5b"].make(bare)
    assert isinstance(drawn, Figure)
    assert isinstance(table, Table)
    assert "test score x100" not in drawn.svg
    assert {row.cells[3].text for row in table.rows} == {"–"}


def test_accepted_proposals_stand_in_order_with_their_scores_on_test(searched: ComparedInputs) -> None:
    (table,) = REPORTS["figure-5b"].make(searched)
    assert isinstance(table, Table)
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["all", "", "20.00", "31.00", "28.00 to 34.00", "–", "–"],
        ["01-explore lexical-rules", "words tell", "22.00", "32.50", "29.50 to 35.50", "+1.50", "+0.50 to +2.50"],
        ["02-repair lexical-rules", "words tell", "23.00", "30.00", "27.00 to 33.00", "−1.00", "−2.00 to 0.00"],
    ]
    assert [row.highlighted for row in table.rows] == [False, False, True]
    assert "2 proposals of 4" in table.caption


def test_winners_have_intervals_beneath_the_radar(made: ComparedInputs) -> None:
    drawn, table = REPORTS["figure-2a"].make(made)
    assert isinstance(drawn, Figure)
    assert isinstance(table, Table)
    assert "winner minus all five" in drawn.svg
    for row in cells(table).values():
        low, high = (float(end.replace("−", "-")) for end in row["Interval"].split(" to "))
        assert low <= float(row["Margin over all"].replace("−", "-")) <= high


def test_a_subset_keeps_its_colour_from_figure_to_figure(made: ComparedInputs) -> None:
    by_domain, _ = REPORTS["figure-2a"].make(made)
    by_capability, _ = REPORTS["figure-2b"].make(made)
    assert isinstance(by_domain, Figure)
    assert isinstance(by_capability, Figure)
    shared = {group.winner for group in made.winners.domains} & {group.winner for group in made.winners.capabilities}
    assert shared
    for mask in shared:
        colour = made.winners.looks[mask].colour
        assert colour in by_domain.svg
        assert colour in by_capability.svg


def test_domains_are_drawn_with_clustered_intervals_and_differences(made: ComparedInputs) -> None:
    (drawn,) = REPORTS["figure-4"].make(made)
    assert isinstance(drawn, Figure)
    assert "MESA minus it" in drawn.svg
    assert "resample whole episodes" in drawn.caption


def test_on_other_data_the_paper_has_no_figures(inputs: ReportInputs, settings: Settings) -> None:
    found = compared(inputs, settings, "synthetic")
    tables = [item for report in REPORTS.values() for item in report.make(found) if isinstance(item, Table)]
    assert not [column for table in tables for column in table.columns if column.title.startswith("Paper, ")]
    assert {"–"} == {row["Paper"] for table in tables for row in cells(table).values() if "Paper" in row}


def test_every_figure_of_the_paper_is_of_a_row_there_can_be() -> None:
    for figure in FIGURES:
        assert figure.table in MODELS
        assert figure.source
        assert figure.row in BASELINES or figure.row in TESTED_ROWS or figure.row.startswith("lookup by"), figure
        assert figure.column in (OVERALL, "causal")
    assert len({(figure.table, figure.row, figure.column) for figure in FIGURES}) == len(FIGURES)
    assert len(MARGINS) == 6


def test_what_a_caption_explains_is_in_its_table(made: ComparedInputs) -> None:
    rungs = ladder(made.report.tests, {}, made.report.matrix, made.report.evaluation)
    climbed = dataclasses.replace(made, report=dataclasses.replace(made.report, ladder=rungs))
    (selected,), (fixed,) = REPORTS["table-3"].make(climbed), REPORTS["table-9"].make(climbed)
    assert isinstance(selected, Table)
    assert isinstance(fixed, Table)
    assert ("the oracle picks with hindsight" in selected.caption) == ("oracle" in cells(selected))
    assert "oracle" not in cells(fixed)
    assert "oracle" not in fixed.caption
    assert "ablation" not in fixed.caption


def test_locomo_has_its_own_tables(inputs: ReportInputs, settings: Settings) -> None:
    found = compared(inputs, settings, "locomo")
    assert capabilities_table(found) == ()
    (first,), (over,) = locomo_table(found), locomo_splits_table(found)
    assert "one split seed" in first.caption
    assert "5 split seeds" in over.caption
    assert cells(first)["MESA"]["Paper"] == "49.0"


def test_judged_systems_stand_in_the_table_of_judges(made: ComparedInputs) -> None:
    rows = tuple(JudgeRow("reward", system, 0.5, 4, 0) for system in (FROZEN_ROW, "all"))
    judged = JudgedSeed(0, {"reward": "x"}, "m", "o", rows, (Agreement("reward", "y", 4, 0.5, None),))
    found = dataclasses.replace(made, report=dataclasses.replace(made.report, judged=(judged,)))
    assert [item.name for item in REPORTS["table-6"].make(found)] == ["table-6-judges", "table-6-agreement"]
    assert REPORTS["table-6"].make(made) == ()


def test_all_is_written_whatever_names_and_texts_hold(inputs: ReportInputs, settings: Settings, tmp_path: Path) -> None:
    infos = tuple(dataclasses.replace(question, domain=f"{HOSTILE} {question.domain}") for question in inputs.matrix.questions)
    hostile = dataclasses.replace(inputs, matrix=dataclasses.replace(inputs.matrix, questions=infos))
    found = compared(hostile, settings, HOSTILE, title=HOSTILE)
    stale = tmp_path / "tables" / "table-2-locomo.md"
    stale.parent.mkdir()
    stale.write_text("of another dataset")
    write_compared(found, tmp_path)
    page = (tmp_path / "baselines.html").read_text()
    assert "<script>|" not in page
    assert "\x00" not in page
    assert not stale.exists()
    for path in (tmp_path / "tables").glob("*.json"):
        assert {"columns", "rows", "caption"} <= set(json.loads(path.read_text()))
    measured = json.loads((tmp_path / "standings.json").read_text())
    assert np.isfinite(measured["overall"][0]["score"][0])
    assert (tmp_path / "figures" / "figure-4-domains.svg").exists()
