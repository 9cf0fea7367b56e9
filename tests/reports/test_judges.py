"""The section on judges, on judgements worked by hand."""

import dataclasses

from mesa_pipeline.evaluation.leads import LeadStanding
from mesa_pipeline.evaluation.panel import Agreement, JudgedSeed, JudgeRow, Lead
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports.contents import make_report
from mesa_pipeline.reports.html import render_html
from mesa_pipeline.reports.inputs import ReportInputs
from mesa_pipeline.reports.judges import judges_section
from mesa_pipeline.reports.markdown import render_markdown

JUDGES = {"reward": "llm_judge:Qwen", "gemma": "llm_judge:Gemma"}


def judged(seed: int, shift: float = 0.0, kappa: float | None = 0.5, unjudged: int = 0) -> JudgedSeed:
    rows = [
        JudgeRow(judge, system, accuracy + shift, 40 - unjudged, unjudged)
        for judge, accuracies in {"reward": (0.6, 0.5), "gemma": (0.7, 0.65), "majority": (0.62, 0.52)}.items()
        for system, accuracy in zip(("frozen policy", "all"), accuracies, strict=True)
    ]
    return JudgedSeed(seed, JUDGES, "policy", "outcomes", tuple(rows), (Agreement("reward", "gemma", 80, 0.75, kappa),))


def shown(table) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in table.rows]


def test_judges_stand_side_by_side_with_their_spread_over_seeds():
    accuracy, agreement = judges_section([judged(0), judged(1, shift=0.02, unjudged=1)]).items
    assert [column.title for column in accuracy.columns] == ["Answers of", "reward", "gemma", "majority", "Without a verdict"]
    assert shown(accuracy) == [
        ["MESA (frozen policy)", "61.00 ± 1.41", "71.00 ± 1.41", "63.00 ± 1.41", "2"],
        ["All five structures", "51.00 ± 1.41", "66.00 ± 1.41", "53.00 ± 1.41", "2"],
    ]
    assert shown(agreement) == [["reward and gemma", "160", "75.0 ± 0.0", "0.500 ± 0.000"]]
    assert "gemma is llm_judge:Gemma" in accuracy.caption
    assert "as many say right as wrong" in accuracy.caption
    assert "2 split seeds" in accuracy.caption


def test_leads_stand_with_their_intervals_judge_beside_judge():
    leads = [LeadStanding(judge, "bm25", Interval(0.1, 0.02, 0.18, 0.95, 9)) for judge in ("reward", "gemma")]
    leads.append(LeadStanding("reward", "all", Interval(-0.03, -0.1, 0.04, 0.95, 9)))
    _, table, _ = judges_section([judged(0)], leads).items
    assert [column.title for column in table.columns] == ["Answers of", "reward", "Interval", "gemma", "Interval"]
    assert shown(table) == [
        ["BM25", "+10.00", "+2.00 to +18.00", "+10.00", "+2.00 to +18.00"],
        ["All five structures", "−3.00", "−10.00 to +4.00", "–", "–"],
    ]


def test_one_seed_has_no_spread_and_an_unknown_kappa_is_a_dash():
    accuracy, agreement = judges_section([judged(0, kappa=None)]).items
    assert shown(accuracy)[0][1] == "60.00"
    assert shown(agreement)[0][-1] == "–"
    assert "no spread over seeds" in accuracy.caption


def test_it_survives_being_written_and_read():
    whole = dataclasses.replace(judged(3), leads=(Lead("reward", "all", {"e": 1.5}, {"e": 2}),))
    assert JudgedSeed.from_json(whole.to_json()) == whole


def test_the_report_has_the_section_where_judges_were_asked_alone(inputs: ReportInputs):
    hostile = dataclasses.replace(judged(0), judges={"reward": "<script>\x00", "gemma": "\u202e| x"})
    report = make_report(dataclasses.replace(inputs, judged=(hostile,)))
    assert "judges" in [section.anchor for section in report.sections]
    assert "<script>\x00" not in render_html(report)
    assert "MESA (frozen policy)" in render_markdown(report)
    assert "judges" not in [section.anchor for section in make_report(inputs).sections]
