"""A table as text: Markdown to read, comma-separated values as shown, JSON with the numbers behind them."""

import json

import numpy as np

from mesa_pipeline.reports.document import Cell, Column, Table
from mesa_pipeline.reports.markdown import escape_markdown
from mesa_pipeline.reports.metrics import csv_text


def table_markdown(table: Table) -> str:
    """The table under its title, its caption below."""
    lines = [
        [_heading(column) for column in table.columns],
        ["---:" if column.align == "right" else ":---" for column in table.columns],
        *[[escape_markdown(cell.text) for cell in row.cells] for row in table.rows],
    ]
    body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"# {escape_markdown(table.title)}\n\n{body}\n\n{escape_markdown(table.caption)}\n"


def table_csv(table: Table) -> str:
    """The cells as they are shown."""
    return csv_text([_heading(column) for column in table.columns], [[cell.text for cell in row.cells] for row in table.rows])


def table_json(table: Table) -> str:
    """What is shown and the number behind it, cell by cell, with the caption."""
    said = {
        "name": table.name,
        "title": table.title,
        "caption": table.caption,
        "columns": [{"title": column.title, "unit": column.unit} for column in table.columns],
        "rows": [[_cell(cell) for cell in row.cells] for row in table.rows],
    }
    return json.dumps(said, indent=1, allow_nan=False) + "\n"


def _heading(column: Column) -> str:
    return f"{column.title} ({column.unit})" if column.unit else column.title


def _cell(cell: Cell) -> dict[str, str | float | None]:
    known = cell.order is not None and np.isfinite(cell.order)
    return {"text": cell.text, "value": cell.order if known else None}
