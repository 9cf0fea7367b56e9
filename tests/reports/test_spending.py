"""The section on language models, on a ledger worked by hand."""

import dataclasses

from mesa_pipeline.evaluation.prefill import Prefill
from mesa_pipeline.llm.ledger import Spending
from mesa_pipeline.reports.contents import make_report
from mesa_pipeline.reports.inputs import ReportInputs
from mesa_pipeline.reports.spending import spending_section

LEDGER = (
    Spending("answer", "Qwen/Qwen3-32B", 1240, 3, 31, 1_000_000, 800_000, 20_000, 1234.5),
    Spending("build", "Qwen/Qwen3-32B", 40, 0, 0, 90_000, 0, 8_000, 60.0),
)


def shown(table) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in table.rows]


def test_spending_by_phase_and_model_and_what_the_cache_saved():
    spending, prefill = spending_section(LEDGER, Prefill(2_000_000, 380_000)).items
    assert shown(spending)[0] == [
        *("answer", "Qwen/Qwen3-32B", "1,240", "3", "31", "1,000,000", "800,000", "20,000", "1,234"),
    ]
    assert shown(prefill) == [
        ["Evidence tokens of all prompts of the sweep", "2,000,000"],
        ["Of those, new to a prefix cache", "380,000 (19.0%)"],
        ["Prompt tokens that Qwen/Qwen3-32B had not in its cache", "200,000 of 1,000,000 (20.0%)"],
    ]


def test_a_model_that_never_read_has_no_prefill_of_its_own():
    assert len(spending_section(LEDGER[1:], Prefill(0, 0)).items[1].rows) == 2


def test_the_report_has_the_section_where_an_endpoint_was_asked_alone(inputs: ReportInputs):
    assert "models" in [section.anchor for section in make_report(dataclasses.replace(inputs, spending=LEDGER)).sections]
    assert "models" not in [section.anchor for section in make_report(inputs).sections]
