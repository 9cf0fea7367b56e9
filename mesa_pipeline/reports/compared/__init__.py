"""The paper's tables and figures, each from one function, and the page that holds them.

To add one: a function from ``ComparedInputs`` to tables or figures, none where the dataset has nothing for it, and a line in
``REPORTS``.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from mesa_pipeline.artifacts import write_text
from mesa_pipeline.evaluation.system_standings import grouped_standings, standings_of
from mesa_pipeline.reports.compared import construction, drawings, searching, selection, systems
from mesa_pipeline.reports.compared.inputs import ComparedInputs
from mesa_pipeline.reports.compared.page import compared_report
from mesa_pipeline.reports.compared.texts import table_csv, table_json, table_markdown
from mesa_pipeline.reports.document import Figure, Table
from mesa_pipeline.reports.html import render_html

Make = Callable[[ComparedInputs], tuple[Table | Figure, ...]]


@dataclass(frozen=True)
class PaperItem:
    """One table or figure of the paper: its heading here, and what makes it."""

    title: str
    make: Make


REPORTS: dict[str, PaperItem] = {
    "table-1": PaperItem("Main results by capability (Table 1)", systems.capabilities_table),
    "table-2": PaperItem("LoCoMo, one fixed split (Table 2)", systems.locomo_table),
    "table-3": PaperItem("Selection and ablations (Table 3)", selection.selection_table),
    "table-4": PaperItem("Results by domain (Table 4)", systems.domains_table),
    "table-5": PaperItem("Token F1 (Table 5)", systems.f1_table),
    "table-6": PaperItem("Judges (Table 6)", selection.judges_tables),
    "table-7": PaperItem("LoCoMo over splits (Table 7)", systems.locomo_splits_table),
    "table-8": PaperItem("Construction time (Table 8)", construction.construction_table),
    "table-9": PaperItem("Fixed selection (Table 9)", selection.fixed_selection_table),
    "figure-2a": PaperItem("Best structures by domain (Figure 2a)", drawings.domains_radar),
    "figure-2b": PaperItem("Best structures by capability (Figure 2b)", drawings.capabilities_radar),
    "figure-4": PaperItem("Domains (Figure 4)", drawings.domains_figure),
    "figure-5a": PaperItem("The search (Figure 5a)", searching.search_figure),
    "figure-5b": PaperItem("Accepted proposals (Figure 5b)", searching.accepted_table),
}

PAGE = "baselines.html"


def write_compared(inputs: ComparedInputs, directory: Path) -> str:
    """Write the page, every table as Markdown, CSV and JSON, every figure as SVG, and all figures unrounded.

    Equal inputs give equal bytes.

    Args:
        inputs: What was measured.
        directory: Made if it is not there; holds ``baselines.html``, ``tables/``, ``figures/`` and ``standings.json`` after.

    Returns:
        The result in one sentence.

    Raises:
        ArtifactError: A file cannot be written.
    """
    made = {name: (item.title, item.make(inputs)) for name, item in REPORTS.items()}
    report = compared_report(inputs, made)
    files = {PAGE: render_html(report), "standings.json": _standings(inputs)}
    for _, items in made.values():
        for item in items:
            if isinstance(item, Figure):
                files[f"figures/{item.name}.svg"] = item.svg
            else:
                texts = {"md": table_markdown(item), "csv": table_csv(item), "json": table_json(item)}
                files |= {f"tables/{item.name}.{ending}": content for ending, content in texts.items()}
    for folder in ("tables", "figures"):
        for path in (directory / folder).glob("*"):
            if f"{folder}/{path.name}" not in files:
                path.unlink()
    for name, content in files.items():
        write_text(directory / name, content)
    return report.verdict


def _standings(inputs: ComparedInputs) -> str:
    measured = {
        "overall": [asdict(found) for found in standings_of(inputs.systems.scored, settings=inputs.report.evaluation)],
        "f1": [asdict(found) for found in standings_of(inputs.systems.f1, settings=inputs.report.evaluation)],
        "capabilities": _asdicts(inputs, lambda question: question.qa_type),
        "domains": _asdicts(inputs, lambda question: question.domain),
        "builds": [asdict(found) for found in inputs.systems.builds if found.n],
    }
    return json.dumps(measured, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _asdicts(inputs: ComparedInputs, group: systems.Group) -> dict[str, list[dict[str, object]]]:
    found = grouped_standings(inputs.systems.scored, group, inputs.report.evaluation)
    return {name: [asdict(standing) for standing in standings] for name, standings in found.items()}


__all__ = ["PAGE", "REPORTS", "ComparedInputs", "PaperItem", "write_compared"]
