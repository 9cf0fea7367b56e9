"""How the core's results are shown on an asset's page."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import dagster as dg

from mesa_pipeline.reports.document import Figure, Listing, Table
from mesa_pipeline.reports.markdown import escape_markdown, fenced
from mesa_pipeline.reports.svg import on_paper
from mesa_pipeline.types import Summary

Value: TypeAlias = dg.MetadataValue[Any]
Metadata: TypeAlias = dict[str, Value]
Row: TypeAlias = Mapping[str, object]
SHOWN_DECIMALS = 4


def of_summary(summary: Summary) -> Metadata:
    """Counts and seconds, and every fact of the summary."""
    figures = {"made": summary.made, "kept": summary.kept, "seconds": round(summary.seconds, 2), **summary.facts}
    return {name: _value(figure) for name, figure in figures.items()}


def of_figures(figures: Mapping[str, float]) -> Metadata:
    """Measured figures under their names, to as many digits as a person reads."""
    return {name: dg.MetadataValue.float(round(value, SHOWN_DECIMALS)) for name, value in figures.items()}


def rows_table(rows: Sequence[Row]) -> Value:
    """A table with every column that a row has; other rows are blank there."""
    if not rows:
        return dg.MetadataValue.md("(none)")
    titles = list(dict.fromkeys(title for row in rows for title in row))
    return _markdown_table(titles, [[_cell(row.get(title, "")) for title in titles] for row in rows])


def lines(texts: Sequence[str]) -> Value:
    """A bulleted list of foreign text."""
    return dg.MetadataValue.md("\n".join(f"- {escape_markdown(' '.join(text.split()))}" for text in texts))


def report_table(table: Table) -> Value:
    """A table of the report, with its caption."""
    titles = [f"{column.title} ({column.unit})" if column.unit else column.title for column in table.columns]
    cells = [[cell.text for cell in row.cells] for row in table.rows]
    return dg.MetadataValue.md(f"{_markdown_table(titles, cells).value}\n\n{escape_markdown(table.caption)}")


def plot(figure: Figure | None) -> Metadata:
    """A drawing with its caption, under the drawing's name; nothing where there was nothing to draw."""
    if figure is None:
        return {}
    image = base64.b64encode(on_paper(figure.svg).encode()).decode("ascii")
    shown = f"![{figure.title}](data:image/svg+xml;base64,{image})\n\n{escape_markdown(figure.caption)}"
    return {f"plot_{figure.name}": dg.MetadataValue.md(shown)}


def link(name: str, url: str | None) -> Metadata:
    """An address, under a name; nothing where there is none."""
    return {} if url is None else {name: dg.MetadataValue.url(url)}


def listing(item: Listing) -> Value:
    """Code as a block, with its caption."""
    return dg.MetadataValue.md(f"{fenced(item)}\n\n{escape_markdown(item.caption)}")


def _markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> dg.MarkdownMetadataValue:
    lines = [titles, ["---"] * len(titles), *rows]
    escaped = [[line if line == "---" else escape_markdown(" ".join(line.split())) for line in cells] for cells in lines]
    return dg.MetadataValue.md("\n".join("| " + " | ".join(cells) + " |" for cells in escaped))


def _value(figure: object) -> Value:
    if isinstance(figure, int):
        return dg.MetadataValue.int(figure)
    if isinstance(figure, float):
        return dg.MetadataValue.float(figure)
    return dg.MetadataValue.text(str(figure))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
