"""Report: gather what the other stages made and write it down for people."""

import time
from pathlib import Path

from mesa_pipeline import __version__
from mesa_pipeline.artifacts import exclusive, fingerprint, read_json, write_json
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.held_out import TestResult
from mesa_pipeline.reports import ReportInputs, write_report
from mesa_pipeline.stages.build import is_built
from mesa_pipeline.stages.context import StageContext, open_reading, structures_of
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.storage import Manifest, read_manifest
from mesa_pipeline.stages.sweep import is_swept
from mesa_pipeline.stages.table import Table, read_table
from mesa_pipeline.stages.test import read_test
from mesa_pipeline.stages.timings import read_timings
from mesa_pipeline.types import Summary

STAMP_FILE = "inputs.json"


def report(context: StageContext) -> Summary:
    """Write the report of a dataset: HTML, Markdown, metrics and plots; does nothing when none of its inputs changed.

    Before a policy has been tested it reports the sweep alone and says so.

    Raises:
        ArtifactError: Nothing has been swept yet.
    """
    started = time.perf_counter()
    inputs = gather(context)
    folder = context.layout.report
    stamp = folder / STAMP_FILE
    key = _fingerprint(context, inputs)
    page = folder / "report.html"
    kept = page.exists() and _stored(stamp) == key
    if not kept:
        with exclusive(context.layout):
            stamp.unlink(missing_ok=True)
            write_report(inputs, folder)
            write_json(stamp, {"fingerprint": key})
    return Summary("report", int(not kept), int(kept), time.perf_counter() - started, facts={"page": str(page)})


def gather(context: StageContext) -> ReportInputs:
    """Everything the report speaks of, from the artifacts.

    Raises:
        ArtifactError: Nothing has been swept yet.
    """
    manifest = read_manifest(context.layout)
    swept = [entry.id for entry in manifest.episodes if entry.question_count and is_swept_at_all(context, entry.key)]
    if not swept:
        raise ArtifactError(f"no outcomes of {context.dataset!r} in {context.layout.workspace}; make them with `mesa sweep`")
    table = read_table(context, swept)
    tests = _tests(context)
    return ReportInputs(
        dataset=context.dataset,
        provenance=_provenance(context, manifest),
        matrix=table.matrix,
        tests=tests,
        splits=tuple(read_split(context, result.seed) for result in tests),
        build_seconds=_build_seconds(context, manifest),
        failures=_failures(context, manifest, table),
        skipped=manifest.skipped,
    )


def is_swept_at_all(context: StageContext, key: str) -> bool:
    """Whether an episode has outcomes, complete or not."""
    return context.layout.outcomes(key).exists()


def _tests(context: StageContext) -> tuple[TestResult, ...]:
    found: list[TestResult] = []
    for seed in context.settings.splits.seeds:
        try:
            found.append(read_test(context, seed))
        except ArtifactError:
            continue
    return tuple(found)


def _provenance(context: StageContext, manifest: Manifest) -> dict[str, str]:
    reading = open_reading(context.settings, context.dataset)
    return {
        "dataset": context.dataset,
        "episodes": f"{len(manifest.episodes):,}",
        "questions": f"{manifest.question_count:,}",
        "reader": reading.reader.name,
        "reward": reading.reward.name,
        "embedder": context.settings.llm.embedder,
        "tokenizer": reading.counter.name,
        "lambda": f"{context.settings.search.lambda_:g}",
        "package version": __version__,
        "settings": fingerprint(context.settings.model_dump(mode="json")),
        "data": manifest.fingerprint,
    }


def _build_seconds(context: StageContext, manifest: Manifest) -> dict[str, tuple[float, ...]]:
    keys = {entry.key for entry in manifest.episodes}
    seconds = {code: read_timings(context.layout, f"build-{code}") for code in structures_of(context.settings)}
    return {code: tuple(found[key] for key in sorted(keys & found.keys())) for code, found in seconds.items()}


def _failures(context: StageContext, manifest: Manifest, table: Table) -> tuple[str, ...]:
    lines = [
        f"{structure.name} memory of episode {entry.id!r} is missing or outdated"
        for structure in structures_of(context.settings).values()
        for entry in manifest.episodes
        if not is_built(context.layout, structure, entry)
    ]
    lines += [
        f"episode {entry.id!r} is not swept completely"
        for entry in manifest.episodes
        if entry.question_count and not is_swept(context, entry)
    ]
    return (*lines, *(f"question {question_id!r} has no outcome" for question_id in table.unswept))


def _fingerprint(context: StageContext, inputs: ReportInputs) -> str:
    tests = [result.to_json() for result in inputs.tests]
    seconds = {code: list(values) for code, values in inputs.build_seconds.items()}
    outcomes = [question.id for question in inputs.matrix.questions]
    swept = [fingerprint(inputs.matrix.scores.tobytes().hex()), fingerprint(inputs.matrix.tokens.tobytes().hex())]
    return fingerprint(inputs.provenance, tests, seconds, outcomes, swept, inputs.failures, inputs.skipped)


def _stored(stamp: Path) -> str | None:
    try:
        return str(read_json(stamp, "mesa report")["fingerprint"])
    except ArtifactError:
        return None
