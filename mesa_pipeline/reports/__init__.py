"""The comparison report: what was measured, for people and for machines.

To add a rendering: a function from ``Report`` to text, and a line in ``REPORTS``.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mesa_pipeline.artifacts import write_text
from mesa_pipeline.reports.comparing import headline_metrics
from mesa_pipeline.reports.document import Report
from mesa_pipeline.reports.html import render_html
from mesa_pipeline.reports.inputs import ReportInputs
from mesa_pipeline.reports.markdown import render_markdown


def render_metrics(report: Report) -> str:
    """The flat metrics as JSON, keys sorted."""
    return json.dumps(dict(report.metrics), sort_keys=True, indent=1, allow_nan=False) + "\n"


def render_headline(report: Report) -> str:
    """The few figures that a change is judged by, as JSON, rounded and in their own order."""
    return json.dumps(headline_metrics(report.metrics), indent=1, allow_nan=False) + "\n"


REPORTS: dict[str, Callable[[Report], str]] = {
    "report.html": render_html,
    "report.md": render_markdown,
    "metrics.json": render_metrics,
    "headline.json": render_headline,
}


class ReportPaths(NamedTuple):
    """Where the parts of a report lie."""

    html: Path
    markdown: Path
    metrics: Path
    plots: tuple[Path, ...]
    figures: tuple[Path, ...]


def write_report(report: Report, directory: Path) -> ReportPaths:
    """Write all the files of a report; equal reports give equal bytes.

    Args:
        report: What to write, from ``make_report``.
        directory: Made if it is not there. Holds ``report.html``, ``report.md``, ``metrics.json``, ``headline.json``,
            ``plots/*.csv`` and ``figures/*.svg`` afterwards.

    Raises:
        ArtifactError: A file cannot be written.
    """
    files = {name: render(report) for name, render in REPORTS.items()}
    plots = {f"plots/{name}.csv": content for name, content in report.series.items()}
    drawings = {f"figures/{figure.name}.svg": figure.svg for figure in report.figures}
    for name, content in (files | plots | drawings).items():
        write_text(directory / name, content)
    return ReportPaths(
        html=directory / "report.html",
        markdown=directory / "report.md",
        metrics=directory / "metrics.json",
        plots=tuple(directory / name for name in plots),
        figures=tuple(directory / name for name in drawings),
    )


__all__ = ["REPORTS", "Report", "ReportInputs", "ReportPaths", "write_report"]
