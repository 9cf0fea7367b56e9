"""Baseline report: the paper's tables and figures of MESA beside the systems that were run."""

import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from mesa_pipeline.artifacts import exclusive, fingerprint, read_json, write_sealed_json
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.reports.inputs import ReportInputs
from mesa_pipeline.stages.build import own_build_costs
from mesa_pipeline.stages.compare_systems import compared_systems
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.improvements import improvement_scores
from mesa_pipeline.stages.report import analysed, gather, inputs_fingerprint
from mesa_pipeline.subsets import STRUCTURE_CODES
from mesa_pipeline.types import Summary

if TYPE_CHECKING:
    from mesa_pipeline.reports.compared.inputs import ComparedInputs

STAMP_FILE = "inputs.json"
REPORT_VERSION = 4
"""Raised when the report says something else for the same inputs."""


def baseline_report(context: StageContext) -> Summary:
    """Write the comparison with other systems: a page, tables as Markdown, CSV and JSON, figures as SVG.

    Does nothing when none of its inputs changed. Systems that were not run are said to be missing.

    Raises:
        ArtifactError: Nothing has been swept, or no policy has been tested.
    """
    from mesa_pipeline.reports.compared import PAGE, write_compared  # draws with matplotlib, which takes a second to load

    started = time.perf_counter()
    inputs = gather(context)
    _require_tested(inputs)
    folder = context.layout.comparison
    key = fingerprint("baseline report", REPORT_VERSION, inputs_fingerprint(inputs), _noted(context, inputs.answered))
    kept = (folder / PAGE).exists() and _stamped(context).get("fingerprint") == key
    if not kept:
        made = _compared(inputs, context)
        with exclusive(context.layout):
            (folder / STAMP_FILE).unlink(missing_ok=True)
            verdict = write_compared(made, folder)
            write_sealed_json(folder / STAMP_FILE, {"fingerprint": key, "verdict": verdict})
    facts: dict[str, object] = {"verdict": _stamped(context)["verdict"], "page": str(folder / PAGE)}
    return Summary("baseline report", int(not kept), int(kept), time.perf_counter() - started, facts=facts)


def compared_inputs(context: StageContext) -> "ComparedInputs":
    """What the tables and figures are made from.

    Raises:
        ArtifactError: Nothing has been swept, or no policy has been tested.
    """
    inputs = gather(context)
    _require_tested(inputs)
    return _compared(inputs, context)


def _compared(inputs: ReportInputs, context: StageContext) -> "ComparedInputs":
    from mesa_pipeline.reports.compared.inputs import ComparedInputs

    inputs = analysed(inputs, context)
    return ComparedInputs(
        report=inputs,
        systems=inputs.compared or compared_systems(context, (), inputs.tests, inputs.matrix),
        improvements={
            search.seed: improvement_scores(context, search, inputs.tests, inputs.matrix) for search in inputs.searches[:1]
        },
    )


def _require_tested(inputs: ReportInputs) -> None:
    if not inputs.tests:
        raise ArtifactError("no policy has been tested, so there is nothing to compare; run `mesa run` or `mesa test` first")


def _noted(context: StageContext, codes: Iterable[str]) -> str:
    """Fingerprint of what builds were noted to take."""
    noted = {code: own_build_costs(context, code) for code in (*codes, *STRUCTURE_CODES)}
    return fingerprint({code: {key: asdict(cost) for key, cost in costs.items()} for code, costs in noted.items()})


def _stamped(context: StageContext) -> dict[str, str]:
    try:
        stamped: dict[str, str] = read_json(context.layout.comparison / STAMP_FILE, "mesa baselines report")
    except ArtifactError:
        return {}
    return stamped
