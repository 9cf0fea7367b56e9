"""The section on credit and regret."""

import dataclasses
from xml.etree import ElementTree

import numpy as np
import pytest

from mesa_pipeline.config import Settings
from mesa_pipeline.evaluation.credit_summary import CreditSummary, summarise_credit
from mesa_pipeline.reports import ReportInputs
from mesa_pipeline.reports.contents import make_report
from mesa_pipeline.reports.credit import MAX_GROUPS, credit_section, credit_table, group_regret_table, regret_table
from mesa_pipeline.reports.credit_figures import credit_figure
from mesa_pipeline.reports.html import render_html
from mesa_pipeline.reports.markdown import render_markdown

HOSTILE = "<b>\x00\ud800\u202e{{ 7*7 }} $\\frac{$ ]]>"


@pytest.fixture(scope="module")
def summary(inputs: ReportInputs, settings: Settings) -> CreditSummary:
    return summarise_credit(inputs.matrix, inputs.tests, settings)


def test_says_so_before_there_is_a_test(inputs: ReportInputs) -> None:
    section = credit_section(None)
    assert section.items == ()
    assert "before a policy has been tested" in section.paragraphs[0]
    assert "What each structure is worth" in render_markdown(make_report(dataclasses.replace(inputs, credit=None)))


def test_shows_figures_and_tables_in_both_renderings(inputs: ReportInputs, summary: CreditSummary) -> None:
    report = make_report(dataclasses.replace(inputs, credit=summary))
    assert {"credit", "interactions", "regret"} <= {figure.name for figure in report.figures}
    for figure in report.figures:
        ElementTree.fromstring(figure.svg)
    shown = f"{100 * summary.overall.shapley[0].mean:+.2f}"
    assert shown in render_html(report)
    assert shown in render_markdown(report)


def test_equal_summaries_give_equal_bytes(summary: CreditSummary) -> None:
    assert credit_section(summary) == credit_section(summary)


def test_tables_hold_the_figures_of_the_summary(summary: CreditSummary) -> None:
    table = credit_table(summary.overall)
    assert [row.cells[1].order for row in table.rows] == [value.mean for value in summary.overall.shapley]
    assert [row.cells[3].order for row in table.rows] == [value.mean for value in summary.overall.leave_one_out]
    assert [row.cells[8].order for row in table.rows] == list(summary.overall.harmful)
    regret = regret_table(summary.regret)
    assert [row.cells[0].text for row in regret.rows if row.highlighted] == ["frozen policy"]
    assert [row.cells[4].order for row in regret.rows][1:] == [rung.gain.mean for rung in summary.regret.rungs[1:]]


def test_regret_is_told_by_group_where_there_are_groups(summary: CreditSummary) -> None:
    assert {group.kind for group in summary.regret.groups} == {"domain", "capability"}
    table = group_regret_table(summary.regret.groups)
    assert [row.cells[3].order for row in table.rows] == [group.policy for group in summary.regret.groups]
    without = dataclasses.replace(summary, regret=dataclasses.replace(summary.regret, groups=()))
    assert "group-regret" in {item.name for item in credit_section(summary).items}
    assert "group-regret" not in {item.name for item in credit_section(without).items}


def test_hostile_names_and_many_groups(summary: CreditSummary) -> None:
    many = tuple(dataclasses.replace(summary.domains[0], name=f"{HOSTILE} {k}", questions=k + 1) for k in range(MAX_GROUPS + 5))
    section = credit_section(dataclasses.replace(summary, domains=many, capabilities=()))
    (figure,) = (item for item in section.items if item.name == "credit" and hasattr(item, "svg"))
    root = ElementTree.fromstring(figure.svg)
    labels = [text for text in ("".join(node.itertext()) for node in root.iter()) if text.startswith("<b>")]
    assert len([label for label in labels if len(label) <= 20]) >= MAX_GROUPS
    assert "\x00" not in figure.svg
    assert "\u202e" not in figure.svg


def test_groups_of_nothing_but_zeros_can_be_drawn(summary: CreditSummary) -> None:
    zero = dataclasses.replace(summary.overall.shapley[0], mean=0.0, low=0.0, high=0.0)
    flat = dataclasses.replace(summary.overall, shapley=(zero,) * 5, interactions=(zero,) * 10)
    section = credit_section(dataclasses.replace(summary, overall=flat))
    assert len(section.items) == 6
    assert credit_figure([[flat]]).svg


def test_left_out_questions_are_counted(summary: CreditSummary) -> None:
    assert len(credit_section(summary).paragraphs) == 1
    assert "3 questions unscored" in credit_section(dataclasses.replace(summary, left_out=3)).paragraphs[1]
    assert np.isclose(sum(summary.enough), 1)
