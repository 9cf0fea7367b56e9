"""What is shown on an asset's page."""

import base64

import dagster as dg

from mesa_pipeline.defs import metadata
from mesa_pipeline.reports.document import Figure, Listing
from mesa_pipeline.types import Summary


def test_a_summary_is_shown_with_every_fact():
    shown = metadata.of_summary(Summary("ingest", 3, 1, 1.234, facts={"steps": 60, "page": "report.html", "share": 0.5}))
    assert {name: value.value for name, value in shown.items()} == {
        "made": 3,
        "kept": 1,
        "seconds": 1.23,
        "steps": 60,
        "page": "report.html",
        "share": 0.5,
    }


def test_foreign_text_cannot_break_a_table():
    shown = metadata.rows_table([{"domain": "a|b\n<script>`", "n": 1234}])
    assert shown.value == "| domain | n |\n| --- | --- |\n| a\\|b &lt;script&gt;\\` | 1,234 |"


def test_an_empty_table_says_so():
    assert metadata.rows_table([]) == dg.MetadataValue.md("(none)")


def test_a_row_is_blank_where_another_has_a_column():
    shown = metadata.rows_table([{"a": 1, "b": 2}, {"a": 3, "c": "x"}])
    assert shown.value == "| a | b | c |\n| --- | --- | --- |\n| 1 | 2 |  |\n| 3 |  | x |"


def test_code_is_a_block_that_nothing_in_it_closes():
    shown = metadata.listing(Listing("policy", "Its code", "x = 1\n```\n# <b>", "What it *is*.", "python"))
    assert shown.value == "````python\nx = 1\n```\n# <b>\n````\n\nWhat it \\*is\\*."


def test_a_plot_is_an_image_within_the_page_on_white_even_in_dark_mode():
    figure = Figure("cost", "Cost", "<svg />", "What it shows.", "")
    (shown,) = metadata.plot(figure).values()
    image = base64.b64encode(b'<svg style="background: #ffffff" />').decode()
    assert shown.value == f"![Cost](data:image/svg+xml;base64,{image})\n\nWhat it shows."
    assert metadata.plot(None) == {}
