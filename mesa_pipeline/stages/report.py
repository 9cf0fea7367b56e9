"""Report: gather what the other stages made and write it down for people."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from mesa_pipeline import __version__
from mesa_pipeline.artifacts import exclusive, fingerprint, read_json, write_sealed_json
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.aggregate import pooled_versus_all
from mesa_pipeline.evaluation.budget import BudgetedPolicy, budget_curves
from mesa_pipeline.evaluation.credit_summary import summarise_credit
from mesa_pipeline.evaluation.held_out import TestResult, outcomes_sha256
from mesa_pipeline.evaluation.ladder import ladder
from mesa_pipeline.evaluation.leads import lead_standings
from mesa_pipeline.reports import ReportInputs, write_report
from mesa_pipeline.stages.build import is_built, own_build_costs
from mesa_pipeline.stages.compare_systems import answered_systems, compared_systems
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import open_reading, structures_of
from mesa_pipeline.stages.night_page import read_history
from mesa_pipeline.stages.optimize import read_frozen
from mesa_pipeline.stages.report_models import deciders, judged_seeds, makers
from mesa_pipeline.stages.report_search import ablation_contexts, search_findings
from mesa_pipeline.stages.spending import read_spending
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.storage import Manifest, read_manifest
from mesa_pipeline.stages.sweep import is_swept
from mesa_pipeline.stages.table import Table, read_table
from mesa_pipeline.stages.test import read_test
from mesa_pipeline.types import Summary

STAMP_FILE = "inputs.json"
REPORT_VERSION = 11
"""Raised when the report says something else for the same inputs."""
logger = logging.getLogger(__name__)


def report(context: StageContext) -> Summary:
    """Write the report of a dataset: HTML, Markdown, metrics and plots; does nothing when none of its inputs changed.

    Before a policy has been tested it reports the sweep alone and says so.

    Raises:
        ArtifactError: Nothing has been swept yet.
    """
    started = time.perf_counter()
    inputs = gather(context)
    page, stamp = context.layout.report / "report.html", context.layout.report / STAMP_FILE
    stamped = {"fingerprint": inputs_fingerprint(inputs), "measured": _measured(inputs)}
    kept = page.exists() and _is_current(_stamped(stamp), stamped)
    if not kept:
        from mesa_pipeline.reports.contents import make_report  # draws with matplotlib, which only a new report needs to load

        made = make_report(analysed(inputs, context))
        with exclusive(context.layout):
            stamp.unlink(missing_ok=True)
            write_report(made, context.layout.report)
            write_sealed_json(stamp, {**stamped, "verdict": made.verdict})
    facts: dict[str, object] = {"verdict": _stamped(stamp)["verdict"], "page": str(page)}
    return Summary("report", int(not kept), int(kept), time.perf_counter() - started, facts=facts)


def gather(context: StageContext) -> ReportInputs:
    """Everything the report speaks of, from the artifacts.

    Raises:
        ArtifactError: Nothing has been swept yet.
    """
    manifest = read_manifest(context.layout)
    swept = [entry.id for entry in manifest.episodes if context.layout.outcomes(entry.key).exists()]
    if not swept:
        raise ArtifactError(f"no outcomes of {context.dataset!r} in {context.layout.workspace}; make them with `mesa sweep`")
    table = read_table(context, swept)
    tests, searches = _tests(context, table, "mesa test"), search_findings(context)
    answered = answered_systems(context)
    return ReportInputs(
        dataset=context.dataset,
        provenance=_provenance(context, manifest, deciders(tests, searches)),
        matrix=table.matrix,
        evaluation=context.settings.evaluation,
        tests=tests,
        pooled=pooled_versus_all(tests, table.matrix, context.settings.evaluation) if tests else None,
        searches=searches,
        ablations={
            name: found
            for name, ablation in ablation_contexts(context).items()
            if (found := _tests(ablation, table, f"mesa ablate --only '{name}'"))
        },
        answered=answered,
        judged=judged_seeds(context, tests, answered),
        spending=read_spending(context.layout.workspace),
        champion=read_history(context.layout),
        splits=tuple(read_split(context, result.seed) for result in tests),
        build_seconds=_build_seconds(context),
        failures=_failures(context, manifest, table),
        skipped=manifest.skipped,
    )


def analysed(inputs: ReportInputs, context: StageContext) -> ReportInputs:
    """The inputs with what follows from them and the settings alone, and takes longer than finding out that nothing changed."""
    if not inputs.tests:
        return inputs
    policies = _budgeted_policies(context, inputs.tests)
    labels, evaluation = context.settings.search.labels, context.settings.evaluation
    return replace(
        inputs,
        credit=summarise_credit(inputs.matrix, inputs.tests, context.settings),
        budgets=budget_curves(policies, inputs.matrix, labels, evaluation) if policies else (),
        ladder=ladder(inputs.tests, inputs.ablations, inputs.matrix, evaluation),
        leads=lead_standings(inputs.judged, evaluation),
        compared=compared_systems(context, list(inputs.answered), inputs.tests, inputs.matrix) if inputs.answered else None,
    )


def _budgeted_policies(context: StageContext, tests: Sequence[TestResult]) -> tuple[BudgetedPolicy, ...]:
    """The tested policies that were frozen with their expected values, as they were when tested."""
    found: list[BudgetedPolicy] = []
    for test in tests:
        try:
            frozen = read_frozen(context, test.seed)
        except ArtifactError as error:
            logger.info("seed %d is left out of the token budgets: %s", test.seed, error)
            continue
        if frozen.values is not None and frozen.manifest_sha256 == test.receipt.manifest_sha256:
            found.append(BudgetedPolicy(test.choices, frozen.values))
    return tuple(found)


def _tests(context: StageContext, table: Table, remedy: str) -> tuple[TestResult, ...]:
    """The tests of the policies frozen now on the outcomes as they are now; any other is as good as none.

    Args:
        context: Of the search as it is, or of an ablation.
        table: The outcomes.
        remedy: The command that tests anew.
    """
    found: list[TestResult] = []
    outdated: list[str] = []
    for seed in context.settings.splits.seeds:
        try:
            result, held_out = read_test(context, seed), set(read_split(context, seed).test)
        except ArtifactError as error:
            logger.info("seed %d is left out of the report: %s", seed, error)
            continue
        tested = table.matrix.select(np.array([q.episode_id in held_out for q in table.matrix.questions]))
        if result.receipt.outcomes_sha256 == outcomes_sha256(tested) and _is_of_frozen(context, result):
            found.append(result)
        else:
            outdated.append(str(seed))
    if outdated:
        logger.warning("left out of the report: outdated tests of split seeds %s; run `%s`", ", ".join(outdated), remedy)
    return tuple(found)


def _is_of_frozen(context: StageContext, result: TestResult) -> bool:
    """Whether the policy frozen now is the one that was tested; a test outlives the loss of its policy."""
    try:
        return read_frozen(context, result.seed).manifest_sha256 == result.receipt.manifest_sha256
    except ArtifactError:
        return True


def _provenance(context: StageContext, manifest: Manifest, decided: Mapping[str, str]) -> dict[str, str]:
    reading = open_reading(context.settings, context.layout)
    fitted_on = reading.reader.identity().get("fitted_on")
    return {
        "dataset": context.dataset,
        "profile": context.settings.profile_label,
        "episodes": f"{len(manifest.episodes):,}",
        "questions": f"{manifest.question_count:,}",
        **makers(context),
        "reader": reading.reader.name + (f" (weights fitted on {fitted_on})" if fitted_on else ""),
        "reward": reading.reward.name,
        **decided,
        "embedder": context.settings.llm.embedder_name,
        "tokenizer": reading.counter.name,
        "lambda": f"{context.settings.search.lambda_:g}",
        "package version": __version__,
        "settings": fingerprint(context.settings.model_dump(mode="json")),
        "data": manifest.fingerprint,
    }


def _build_seconds(context: StageContext) -> dict[str, tuple[float, ...]]:
    costs = {code: own_build_costs(context, code) for code in structures_of(context.settings, context.layout.workspace)}
    return {code: tuple(found[key].seconds for key in sorted(found)) for code, found in costs.items()}


def _failures(context: StageContext, manifest: Manifest, table: Table) -> tuple[str, ...]:
    lines = [
        f"{structure.name} memory of episode {entry.id!r} is missing or outdated"
        for structure in structures_of(context.settings, context.layout.workspace).values()
        for entry in manifest.episodes
        if not is_built(context.layout, structure, entry)
    ]
    lines += [
        f"episode {entry.id!r} is not swept completely"
        for entry in manifest.episodes
        if entry.question_count and not is_swept(context, entry)
    ]
    return (*lines, *(f"question {question_id!r} has no outcome" for question_id in table.unswept))


def inputs_fingerprint(inputs: ReportInputs) -> str:
    """Key of all that a report says but for what was measured on the way, such as seconds."""
    return fingerprint(
        REPORT_VERSION,
        inputs.provenance,
        outcomes_sha256(inputs.matrix),
        [result.to_json() for result in inputs.tests],
        asdict(inputs.pooled) if inputs.pooled else None,
        [asdict(search) for search in inputs.searches],
        {name: [result.to_json() for result in results] for name, results in inputs.ablations.items()},
        [asdict(judged) for judged in inputs.judged],
        dict(inputs.answered),
        asdict(inputs.champion),
        [asdict(split) for split in inputs.splits],
        inputs.failures,
        inputs.skipped,
    )


def _measured(inputs: ReportInputs) -> str:
    """Fingerprint of what was measured as the results were made; empty where nothing was, as in a copy of the results alone."""
    spending = [asdict(line) for line in inputs.spending]
    seconds = {code: list(values) for code, values in inputs.build_seconds.items() if values}
    return fingerprint(spending, seconds) if spending or seconds else ""


def _is_current(stored: Mapping[str, str], found: Mapping[str, str]) -> bool:
    """Whether the report was made from what is found now; one that also tells of measurements that are not here is kept."""
    return stored.get("fingerprint") == found["fingerprint"] and found["measured"] in ("", stored.get("measured"))


def _stamped(stamp: Path) -> dict[str, str]:
    """What the last report was made from and said; empty where there is none."""
    try:
        stamped: dict[str, str] = read_json(stamp, "mesa report")
    except ArtifactError:
        return {}
    return stamped
